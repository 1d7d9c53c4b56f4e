"""What is closed at the end of a `with`: subscriptions, watches, advertisements."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Use it in `with`, or call `close` yourself."""

    @abstractmethod
    def close(self) -> None:
        """End it; harmless when it is over."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
