"""Event-based resource discovery: who has what, asked of brokers by constraints.

The paper: W. Yan et al., *Efficient event-based resource discovery* (DEBS 2009), sections 4 and 5.
It runs on content-based routing (`protocols.content`), whose brokers, advertisements and
subscriptions it uses; constraints and their relations: `overlay.predicates`.

A resource is *registered* by an advertisement that every broker knows (`whole`). A *static* one is
all in it. A *dynamic* one publishes its values, and its broker keeps the latest (PubCache). Four
models (Table 1, `ModelType`, which marks every advertisement, subscription and message):

- static: the broker of who asks answers from its own table of advertisements, at once.
- dynamic: the request follows the last hops of intersecting advertisements to the edge brokers;
  what their PubCaches have and matches comes back on the same way.
- static continuous: the broker compares each advertisement that comes with what is watched.
- dynamic continuous: a content subscription, to which updates are routed; after a one-time find.

| tag | message | sent when                                 | the receiver                         |
|-----|---------|-------------------------------------------|--------------------------------------|
| 240 | Request | resources behind the neighbour may match, | answers, and hands it on; or shares  |
|     |         | or the host of a cover is behind it       | the results of a cover               |
| 241 | Results | the PubCache or a cover has what matches  | hands them on; its host keeps them   |
| 242 | Done    | nobody behind the sender owes an answer   | is done when all its branches are    |
| 243 | Gone    | a cover has nothing to share              | routes the request after all         |
| 244 | Receipt | a message of the others came              | sends it no more                     |
| 245 | Update  | a client's resource has new values        | keeps them in its PubCache           |

*The end of a request.* Nothing ends one in the paper. Here each broker says Done to whom it got the
request from, once everybody to whom it sent it has (a diffusing computation, Dijkstra and
Scholten): also where brokers are linked in circles, as a second copy of a request is answered by
Done at once. A find ends when its host has heard Done from every branch, with `complete=True`; or
when its time is over, or a branch was lost, with `complete=False` and what came until then.

*Messages are not lost between neighbours* but with the link itself (`courier.py`): they are
numbered, confirmed, sent again, and handed over in order. So results precede their Done.

*Similarity forwarding* (§5): the first broker that knows an earlier request which covers a new one
sends the new one after that cover, to its host, which has the results (`similarity.py`). The three
structures of the paper are in `records.py`. Results are filtered by the covered request, and
each carries its age.

Departs from algorithms 1 and 2, and why (misprints: PAPER-NOTES of this project):
- Algorithm 1 lacks the `else` before `coverSub <- sub.payload`; the return path is stored in every
  branch. `coverSub.lasthop` is this broker's own record of it.
- Where a broker on the way, or the host, has no such cover, or it is too old, or it failed, the
  paper would route from there, and miss what is behind the brokers passed before. Ours says Gone,
  and the broker that chose the cover routes the request itself.
- A request that shares waits at its cover's host until the cover has ended: only then is it
  known that nothing is missing. Two equal requests under way do not wait for each other: only
  the one with the smaller id is waited for.
- Whether a cover is worth to be asked (no results passed, no advertisement behind its last hop) is
  judged once it is done here; while it is under way only its host knows.
- Shared results may be shared again. So each request knows since when its results are without gap
  (`as_of`), whatever they came through, and no result older than `expiry` is shared: the paper's
  chain of covers could go back for ever. A tenth of `expiry` is left for the way.
- A request covers nobody any more once a resource is registered that may match it: every broker
  hears of that, so whoever asks next finds it. Only changes of values may be up to `expiry` old.
- A find leaves out what its host knows to be registered no more.
- Algorithm 2 as printed returns a late result to the neighbour it came from, so that R1 of Figure 6
  came three times to D2: ours never does, and the host keeps each resource once, as it was last.
- Results travel in packages; `results_sent` counts each result, as the paper does.
- One-time requests are messages of their own, not content subscriptions: covering there would
  silence them after the cover was answered.
- *Direct* results (§4.2) go straight to the host; Done says how many, and the host waits for them.

Invariants
- A find ends exactly once. Each result matches, and comes once, in its latest version.
- (scenarios) A complete find has every resource that matched from `expiry` before the request until
  the answer, and none that did not match at some moment in that time.
- A request is done, or somebody owes it an answer: a neighbour, or a cover hosted here; never
  the one it came from. Who waits for whom has no circles.
- Only routed requests are covers. Everything is bounded (`resources.max_*`), and counted.
"""

from protocols.resources.config import ResourcesSettings
from protocols.resources.events import (
    FindEnded,
    Resource,
    ResourceExpired,
    ResourceFound,
    ResourceGone,
    ResourceRegistered,
)
from protocols.resources.machine import Resources
from protocols.resources.messages import (
    Done,
    Found,
    Gone,
    Receipt,
    Request,
    RequestId,
    Results,
    Slip,
    Update,
)
from protocols.resources.models import ModelType

__all__ = [
    "Done",
    "FindEnded",
    "Found",
    "Gone",
    "ModelType",
    "Receipt",
    "Request",
    "RequestId",
    "Resource",
    "ResourceExpired",
    "ResourceFound",
    "ResourceGone",
    "ResourceRegistered",
    "Resources",
    "ResourcesSettings",
    "Results",
    "Slip",
    "Update",
]
