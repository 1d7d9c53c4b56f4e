"""Temporary."""
from protocols.gateways.events import *
from overlay.protocol import OverlayProtocol
class NoGateways(OverlayProtocol):
    name="gateways"; emits=(GatewayAppointed, GatewayDismissed, GatewayMoved, GatewaysChanged)
    def declare(self, topic, *, publishes, subscribes, now): pass
    def gateway_of(self, topic): return None
    def is_gateway(self, topic): return False
    def knows_remote(self, topic): return True
    def remote_gateways(self, topic): return {}
    def local_publishers(self, topic): return ()
    def local_subscribers(self, topic): return ()
