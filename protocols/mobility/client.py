"""The client's side: moving out of one broker, and in at another."""

from __future__ import annotations

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.content.interface import MobileContent
from protocols.mobility.config import MobilitySettings
from protocols.mobility.counts import MobilityCounts
from protocols.mobility.events import MovedIn, MovedOut, MoveUnanswered, TreeStands
from protocols.mobility.interface import Predictor
from protocols.mobility.messages import GRAFTING, PREFETCHING, MoveIn, MoveOut, TreeReady

MOVE = "move"  # the new broker is asked again

VISITED = 64  # brokers that a predictor gets to know


class Mover:
    """One client, on its way."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        config: MobilitySettings,
        content: MobileContent,
        counts: MobilityCounts,
        predictor: Predictor,
    ) -> None:
        self._me = me
        self._effects = effects
        self._config = config
        self._content = content
        self._counts = counts
        self.predictor = predictor
        self._here: NodeId = ""  # the broker, also while it is silent
        self._previous: NodeId = ""
        self._proxies = config.proxies
        self._visited: list[NodeId] = []
        self._number = 0  # of the last move; grows, also from one life to the next
        self._began = 0.0
        self._asking = False  # for TreeReady
        self._foretold: tuple[NodeId, int] = ("", 0)  # where it is expected, in which epoch

    @property
    def is_moving(self) -> bool:
        """Whether it has no broker, or its trees are not known to stand."""
        return not self._here or self._asking

    @property
    def is_somewhere(self) -> bool:
        """Whether there is a broker to move out of."""
        return bool(self._here)

    def moveout(self, now: float) -> None:
        """Leave the broker; LocalProtocolError where there is none."""
        broker = self._here
        if not broker:
            raise LocalProtocolError(f"{self._me} has no broker to move out of: move in first")
        self._effects.cancel_timer(MOVE)
        self._asking = False
        predicted, epoch = "", 0
        if self._config.algorithm in PREFETCHING:
            predicted = self.predictor.next(self._visited)
            if predicted in ("", broker, self._me):
                predicted = ""
            else:
                epoch = self._content.next_epoch(now)
        self._foretold = (predicted, epoch)
        if self._config.handover == "lossless":
            self._content.hold(self._config.max_held)
        self._effects.send(
            broker, MoveOut(self._config.algorithm, self._config.handover, predicted, epoch)
        )
        self._content.detach(now)
        self._here, self._previous = "", broker
        self._counts.moveouts += 1
        self._effects.emit(MovedOut(broker, self._config.algorithm))

    def movein(self, broker: NodeId, now: float) -> int:
        """Turn to a broker, after leaving the one that there is; the number of the move."""
        if broker == self._here:
            return self._number
        if broker == self._me:
            raise LocalProtocolError(f"{self._me} cannot be its own broker: name another one")
        if self._here:
            self.moveout(now)
        if self._config.handover == "lossless":
            self._content.hold(self._config.max_held)
        predicted, epoch = self._foretold
        self._foretold = ("", 0)
        self._number = self._content.next_epoch(now)
        self._began = now
        self._asking = self._config.handover != "best-effort"
        self._counts.moveins += 1
        self._arrive(broker)
        if self._config.handover == "lossless":  # before its advertisements: they do not count yet
            self._tell(0, 0)
        self._content.attach(
            broker,
            now,
            graft=self._config.algorithm in GRAFTING,
            epoch=epoch if broker == predicted else 0,
        )
        if self._asking:
            self._effects.set_timer(MOVE, now + self._config.retry)
        self._effects.emit(MovedIn(broker, self._previous, self._number, self._config.algorithm))
        return self._number

    def attached(self, broker: NodeId, now: float) -> None:
        """The broker answers: it will be told the ledger."""
        if broker != self._here:  # the first one, or one that somebody else chose
            self._arrive(broker)
            self._previous = ""
            self._number = self._content.next_epoch(now)
            if self._config.algorithm != "proxy":
                return
        self._tell(*self._content.told(broker))

    def ready(self, src: NodeId, msg: TreeReady, now: float) -> None:
        """The trees stand: what was held is published."""
        if src != self._here or msg.number != self._number:
            self._counts.strays += 1
            return
        if len(msg.proxies) > len(self._proxies) and not self._config.proxies:
            self._proxies = msg.proxies
        for root in msg.roots:
            self._content.rooted(root.id, root.epoch)
        if not self._asking or not msg.stands:
            return
        self._asking = False
        self._effects.cancel_timer(MOVE)
        self._counts.ready += 1
        self._counts.incomplete += not msg.complete
        held = self._content.let_go(now)
        self._effects.emit(
            TreeStands(src, self._number, msg.complete, max(0.0, now - self._began), held)
        )

    def again(self, now: float) -> None:
        """Ask again for what was not answered."""
        if not self._asking:
            return
        if self._content.broker == self._here:
            self._tell(*self._content.told(self._here))
        else:
            self._tell(0, 0)
        waited = now - self._began
        if int(waited / self._config.patience) > int(
            (waited - self._config.retry) / self._config.patience
        ):
            self._counts.unanswered += 1
            self._effects.emit(MoveUnanswered(self._here, self._number))
        self._effects.set_timer(MOVE, now + self._config.retry)

    def _arrive(self, broker: NodeId) -> None:
        self._here = broker
        self._visited.append(broker)
        del self._visited[:-VISITED]

    def _tell(self, series: int, stamp: int) -> None:
        self._effects.send(
            self._here,
            MoveIn(
                self._number,
                self._config.algorithm,
                self._config.handover,
                self._previous,
                self._proxies,
                series,
                stamp,
            ),
        )
