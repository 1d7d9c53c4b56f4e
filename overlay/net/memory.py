"""How the C allocator of this process treats memory that was freed.

By default glibc gives the top of its heap back to the kernel as soon as 128 KiB of it are free,
and takes it again, page fault by page fault, for the next batch: at 64 KiB a payload that was
half of a node's CPU time. A node that moves payloads keeps some of it instead.
"""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # from glibc's malloc.h
LARGEST_MMAP_THRESHOLD = 32 << 20  # glibc's own bound on 64-bit machines
TOP_PAD = 1 << 20


def keep_freed(bytes_kept: int) -> bool:
    """Keep up to that much freed memory for the next batch; False where malloc is not glibc's.

    It holds for the whole process, from now on; 0 changes nothing.
    """
    if not bytes_kept:
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another libc: musl has no mallopt
        return False
    return all(
        mallopt(option, value)
        for option, value in (
            (M_TRIM_THRESHOLD, bytes_kept),
            (M_MMAP_THRESHOLD, min(bytes_kept, LARGEST_MMAP_THRESHOLD)),
            (M_TOP_PAD, min(bytes_kept, TOP_PAD)),
        )
    )
