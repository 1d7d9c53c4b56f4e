"""Colonies: generic resource discovery in a tree of brokers (Arigatoni, §2 and §3).

Units. A *global computer* offers services and asks for some. A *global broker* leads a colony: its
individuals are computers and leaders of subcolonies. Each unit has one leader at most, and the
leader without one is the root. Here a broker is a computer as well: it is an individual of its own
colony, under its own name. A *service* is a constraint on resources (`overlay.predicates`); two
*overlap* if some resource satisfies both (`services`).

| tag | message         | sent when                                  | the receiver                |
|-----|-----------------|--------------------------------------------|-----------------------------|
| 256 | LogIn           | a unit wants that leader                   | Welcome, or LogInRefused    |
| 257 | Welcome         | a LogIn is fine                            | is an individual from now on|
| 258 | LogInRefused    | it is not: a cycle, full, lazy, no leader  | tells why, tries another    |
| 259 | LogOut          | an individual leaves, or a leader wants so | forgets the other one       |
| 260 | Beat            | regularly, and when a link is lost         | Ancestry, or LogOut         |
| 261 | Ancestry        | a Beat came, or the path to the root moved | knows path and its standing |
| 262 | Offers          | the union of a colony's services changed   | changes its routing table   |
| 263 | ServiceRequest  | services are wanted (SREQ)                 | searches, or decides        |
| 264 | ServiceResponse | servants are found, or nobody is (SRESP)   | hands it on, asks others    |
| 265 | Ack             | a reliable request or response is safe     | stops to send it again      |

**Routing tables.** An individual tells its leader the union of what its colony offers, by
versions: `Offers` changes version `base` into `version`; a leader that does not have `base` says
in `Ancestry` what it has, and gets the whole union. So tables are right one round trip after the
last loss.

**A request** (Algorithm 1) carries *wants*: one service each, or a conjunction that one computer
must serve together, with a number of instances. A broker asks its own colony first, in a search
mode:

  broadcast                           every individual, whatever it offers
  exhaustive                          all whose services overlap
  greedy-random, n                    n of them at random, then n others
  greedy-latency, greedy-acceptance   n of them in order: the nearest, the most willing first
  greedy-ordered                      in the order that the broker's setting `order` says

and delegates a want to its leader when nobody is left. The sender of a request is never asked for
it, nor is anybody asked twice for one want. Answers follow the reverse path. A rejected want is
one for which nobody (more) will be found there: after acceptances it only ends them.
EXHAUSTIVE_REPLY (`replies = 0`) and T_r (`replies`) say how many acceptances a broker hands on.

**Time.** A request says how long its receiver may take. A child gets `child_share` of what is
left, and `last_share` if nobody could be asked after it, as the leader does; who is silent for
longer is taken to have rejected. So a request has ended everywhere when its client's time is over,
and the client tells what was not found.

**Reliable requests** are acknowledged once they are on the receiver's disk, sent again until then,
and taken up by a broker that restarts; responses are acknowledged and sent again as well. Nobody
answers or serves twice for it: computers remember what they decided, clients whom they were told.

**Leaders that vanish.** Leaders and individuals that are silent for `lease` are gone; a lost link
asks for a sign of life within `probe`. Who lost its leader tries the grandparent, those above, the
leader that it was told to have, then others told (`leaders`, or broker discovery after
LeaderWanted). It returns to the leader that it was told to have when that one answers again.

What a colony that broke away offered stays in the union for `lease`: so those above go on to ask
there, and a reliable want waits there, instead of being rejected while individuals return.

**No cycles.** `Ancestry` and `Welcome` carry the path to the root. A LogIn of somebody on one's
own path is refused. If several log in at the same moment and close a cycle, each finds itself on
its own path, and the one with the least name leaves its leader.

**Merge and split.** A root that logs in anywhere merges two colonies; an individual broker that
delogs splits its own off. Both change tables on the path to the root, and nothing else.

Departs from the paper: line numbers of the text are one low. Lists start empty, and lines 11 and
25 send only what is not empty. A want is rejected or delegated only when no individual that was
asked for it is still to answer (lines 8 and 22 would reject while others search). `replies`,
instances, conjunctions, reliability, trust and the return home are ours.

Invariants: the union is exactly what own offers, individuals and those who broke away hold,
counted; a want is handled once by each broker; while a want is open somebody was asked who has not
answered, or may return, and a timer is set; nobody was asked twice; a request of this node ends
exactly once, within its time;
every table is bounded by a setting, with a counter for what did not fit.
"""

from protocols.colony.config import ColonySettings
from protocols.colony.events import (
    ColonyUsed,
    IndividualLoggedIn,
    IndividualLoggedOut,
    LeaderFound,
    LeaderLost,
    LeaderRefused,
    LeaderWanted,
    RequestEnded,
    ServantFound,
    ServiceRejected,
)
from protocols.colony.interface import Card, Individual, Proposal, Terms, Wish
from protocols.colony.machine import Colony

__all__ = [
    "Card",
    "Colony",
    "ColonySettings",
    "ColonyUsed",
    "Individual",
    "IndividualLoggedIn",
    "IndividualLoggedOut",
    "LeaderFound",
    "LeaderLost",
    "LeaderRefused",
    "LeaderWanted",
    "Proposal",
    "RequestEnded",
    "ServantFound",
    "ServiceRejected",
    "Terms",
    "Wish",
]
