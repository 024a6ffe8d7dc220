# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libmgt.so and its structs (mgt.h), by ctypes."""

import ctypes
import glob
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Optional

SONAME = "libmgt.so.1"
ABI = 1


class Error(Exception):
    """What went wrong, in one sentence of the library's; `status` is that of the call."""
    status = 0


class InvalidError(Error):
    """The program or data is wrong."""
    status = 1


class UsageError(Error):
    """The call is wrong, or the file is not there."""
    status = 2


class AbsentError(Error):
    """A device, library or compiler is not there."""
    status = 3


class InternalError(Error):
    """A fault of mgpu."""
    status = 4


class UnsupportedError(Error):
    """A feature that this version does not have."""
    status = 5


class LostError(Error):
    """An earlier call lost the program, and said why: close it."""
    status = 6


_ERRORS = {kind.status: kind for kind in (InvalidError, UsageError, AbsentError, InternalError, UnsupportedError, LostError)}


class Sized(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **values):
        super().__init__(size=ctypes.sizeof(type(self)), **values)


class View(ctypes.Structure):
    _fields_ = [("buffer", c_uint32), ("offset", c_int64), ("rank", c_size_t), ("sizes", POINTER(c_int64)), ("strides", POINTER(c_int64))]


class RanksSpec(Sized):
    _fields_ = [("size", c_size_t), ("how", c_char_p), ("communicator", c_void_p), ("rank", c_uint32), ("count", c_uint32),
                ("address", c_char_p), ("port", c_uint32), ("deadline_ms", c_uint32)]


class Input(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("bytes", c_size_t)]


LOG = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class OpenOptions(Sized):
    _fields_ = [("size", c_size_t), ("nccl", c_char_p), ("ranks", POINTER(RanksSpec)), ("deadline_ms", c_uint32),
                ("threads", c_uint32), ("cpu", c_char_p), ("pin", c_int), ("memory", c_char_p), ("roles", c_char_p), ("log", LOG),
                ("log_user", c_void_p), ("ranges", c_int), ("audit", c_uint32), ("audit_action", c_int), ("audit_fresh", c_char_p),
                ("num_constants", c_size_t), ("constants", POINTER(Input)), ("weights", c_char_p)]


class Argument(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("role", c_char_p), ("type", c_char_p), ("rank", c_size_t), ("shape", POINTER(c_int64)),
                ("bytes", c_size_t), ("value", c_char_p), ("is_result", c_int)]


class Time(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("location", c_char_p), ("start_us", c_double), ("end_us", c_double)]


class BufferSpec(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("kind", c_int), ("device", c_int32), ("type", c_char_p), ("rank", c_size_t),
                ("shape", POINTER(c_int64)), ("role", c_char_p), ("contents", c_void_p)]


class Tunable(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("num_values", c_size_t), ("values", POINTER(c_uint32))]


class Cubin(ctypes.Structure):
    _fields_ = [("arch", c_char_p), ("data", c_char_p), ("bytes", c_size_t)]


class KernelSpec(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("entry", c_char_p), ("host_entry", c_char_p), ("cuda", c_char_p), ("host", c_char_p),
                ("block", c_uint32 * 3), ("dynamic_shared_bytes", c_uint32), ("num_tunables", c_size_t), ("tunables", POINTER(Tunable)),
                ("num_cubins", c_size_t), ("cubins", POINTER(Cubin)), ("num_rules", c_size_t), ("rules", POINTER(c_char_p))]


class Arg(ctypes.Structure):
    _fields_ = [("access", c_int), ("view", View), ("type", c_char_p), ("bits", c_uint64)]


class LaunchSpec(Sized):
    _fields_ = [("size", c_size_t), ("kernel", c_uint32), ("device", c_int32), ("grid", c_uint32 * 3), ("num_args", c_size_t),
                ("args", POINTER(Arg)), ("name", c_char_p), ("flops", c_double), ("microseconds", c_double),
                ("most_bytes", POINTER(c_uint64))]


class CollectiveSpec(Sized):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("reduction", c_int), ("num_members", c_size_t), ("send", POINTER(View)),
                ("receive", POINTER(View)), ("axis", c_int64), ("concat_axis", c_int64), ("root", c_int64), ("num_pairs", c_size_t),
                ("pairs", POINTER(c_uint32))]


class PlanOptions(Sized):
    _fields_ = [("size", c_size_t), ("scheduler", c_char_p), ("seed", c_uint64), ("streams", c_uint32), ("transforms", c_char_p),
                ("threads", c_uint32), ("machine", c_char_p), ("budget", c_char_p), ("no_tuned", c_int), ("deadline_ms", c_uint32),
                ("ranks", POINTER(RanksSpec)), ("memory", c_char_p), ("cpu", c_char_p), ("pin", c_int)]


class FiguresSpec(Sized):
    _fields_ = [("size", c_size_t), ("load_us", c_double), ("replay_us", c_double), ("fetch_us", c_double), ("bound_us", c_double),
                ("resident_arguments", c_uint64), ("resident_bytes", c_uint64), ("upload_arguments", c_uint64), ("upload_bytes", c_uint64),
                ("upload_us", c_double)]


class FactsSpec(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("version", c_char_p), ("hash", c_char_p), ("source", c_char_p), ("source_hash", c_char_p),
                ("target", c_char_p), ("code", c_char_p), ("device", c_char_p), ("num_devices", c_uint32), ("num_nodes", c_uint64),
                ("most_device_bytes", c_uint64), ("device_bytes", c_uint64), ("host_bytes", c_uint64), ("options", c_char_p)]


class CountersSpec(Sized):
    _fields_ = [("size", c_size_t), ("replays", c_uint64), ("failures", c_uint64), ("deadline_misses", c_uint64), ("last_us", c_double),
                ("total_us", c_double), ("p50_us", c_double), ("p90_us", c_double), ("p99_us", c_double), ("p999_us", c_double), ("most_us", c_double),
                ("audits", c_uint64), ("differences", c_uint64)]


class SaveOptions(Sized):
    _fields_ = [("size", c_size_t), ("plan", POINTER(PlanOptions)), ("cpu", c_char_p), ("arch", c_char_p), ("alternatives", c_uint32)]


PROGRESS = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p)


class TuneOptions(Sized):
    _fields_ = [("size", c_size_t), ("budget", c_char_p), ("seed", c_uint64), ("num_inputs", c_size_t), ("inputs", POINTER(Input)),
                ("progress", PROGRESS), ("user", c_void_p)]


class TunedSpec(Sized):
    _fields_ = [("size", c_size_t), ("default_us", c_double), ("tuned_us", c_double), ("is_default", c_int), ("is_known", c_int)]


_HANDLE = c_void_p
# Name -> what it takes; all return a status.
_CALLS = {
    "mgt_open_with": (c_char_p, c_char_p, POINTER(OpenOptions), POINTER(_HANDLE)),
    "mgt_open_memory": (c_char_p, c_size_t, c_char_p, POINTER(OpenOptions), POINTER(_HANDLE)),
    "mgt_swap": (_HANDLE, _HANDLE),
    "mgt_capture_into": (_HANDLE, c_void_p),
    "mgt_replay_begin": (_HANDLE,),
    "mgt_wait": (_HANDLE,),
    "mgt_get_rank": (_HANDLE, POINTER(c_uint32), POINTER(c_uint32)),
    "mgt_get_argument": (_HANDLE, c_size_t, POINTER(Argument)),
    "mgt_argument_device": (_HANDLE, c_size_t, POINTER(c_int32)),
    "mgt_share": (_HANDLE, c_char_p, _HANDLE, c_char_p),
    "mgt_configuration": (_HANDLE, POINTER(c_char_p)),
    "mgt_builder_tune": (_HANDLE, c_char_p, POINTER(TuneOptions), POINTER(TunedSpec), POINTER(c_char_p)),
    "mgt_write": (_HANDLE, c_char_p, c_void_p, c_size_t),
    "mgt_read": (_HANDLE, c_char_p, c_void_p, c_size_t),
    "mgt_memory": (_HANDLE, c_char_p, POINTER(c_void_p), POINTER(c_size_t)),
    "mgt_bind": (_HANDLE, c_char_p, c_void_p, c_size_t),
    "mgt_load": (_HANDLE,),
    "mgt_replay": (_HANDLE,),
    "mgt_replay_on": (_HANDLE, c_void_p),
    "mgt_audit": (_HANDLE, POINTER(c_char_p)),
    "mgt_fetch": (_HANDLE,),
    "mgt_plan_text": (_HANDLE, POINTER(c_char_p)),
    "mgt_explain": (_HANDLE, POINTER(c_char_p)),
    "mgt_get_figures": (_HANDLE, POINTER(FiguresSpec)),
    "mgt_get_facts": (_HANDLE, POINTER(FactsSpec)),
    "mgt_get_counters": (_HANDLE, POINTER(CountersSpec)),
    "mgt_register": (c_char_p, c_void_p, c_void_p),
    "mgt_metrics_text": (POINTER(c_char_p),),
    "mgt_write_metrics": (c_char_p,),
    "mgt_builder_figures": (_HANDLE, POINTER(PlanOptions), POINTER(FiguresSpec)),
    "mgt_times": (_HANDLE, POINTER(POINTER(Time)), POINTER(c_size_t)),
    "mgt_builder_new": (c_char_p, c_uint32, POINTER(_HANDLE)),
    "mgt_builder_place": (_HANDLE, c_char_p),
    "mgt_builder_part": (_HANDLE, c_int, c_uint32, c_uint32),
    "mgt_builder_buffer": (_HANDLE, POINTER(BufferSpec), POINTER(c_uint32)),
    "mgt_builder_kernel": (_HANDLE, POINTER(KernelSpec), POINTER(c_uint32)),
    "mgt_builder_launch": (_HANDLE, POINTER(LaunchSpec)),
    "mgt_builder_copy_as": (_HANDLE, POINTER(View), POINTER(View), c_char_p),
    "mgt_builder_fill": (_HANDLE, POINTER(View), c_char_p, c_size_t),
    "mgt_builder_collective": (_HANDLE, POINTER(CollectiveSpec)),
    "mgt_builder_begin_loop": (_HANDLE, c_uint64, c_int64, c_int64, POINTER(c_uint32)),
    "mgt_builder_end_loop": (_HANDLE,),
    "mgt_builder_drop_loop": (_HANDLE,),
    "mgt_builder_check": (_HANDLE,),
    "mgt_builder_probe": (_HANDLE,),
    "mgt_builder_plan_text": (_HANDLE, POINTER(PlanOptions), POINTER(c_char_p)),
    "mgt_builder_explain": (_HANDLE, POINTER(PlanOptions), POINTER(c_char_p)),
    "mgt_builder_open": (_HANDLE, c_char_p, POINTER(PlanOptions), POINTER(_HANDLE)),
    "mgt_builder_save": (_HANDLE, c_char_p, POINTER(SaveOptions)),
}


def find() -> str:
    """MGPU_LIBRARY; else the library in the package, as a wheel has it; else the one of the prefix the
    package was installed in; else the system's."""
    named = os.environ.get("MGPU_LIBRARY")
    if named:
        return os.path.abspath(named)
    here = os.path.dirname(os.path.abspath(__file__))
    prefix = os.path.normpath(os.path.join(here, "..", "..", "..", ".."))  # of share/mgpu/python/mgpu
    for pattern in (os.path.join(here, SONAME), os.path.join(prefix, "lib*", SONAME), os.path.join(prefix, "lib", "*", SONAME)):
        for path in sorted(glob.glob(pattern)):
            return path
    return SONAME


_library = None


def library() -> ctypes.CDLL:
    global _library
    if _library is None:
        path = find()
        try:
            opened = ctypes.CDLL(path)
            if opened.mgt_version() != ABI:
                raise OSError(f"it is of version {opened.mgt_version()}, and this package is for {ABI}")
            for name, types in _CALLS.items():
                getattr(opened, name).argtypes = types
                getattr(opened, name).restype = c_int
            opened.mgt_num_arguments.argtypes, opened.mgt_num_arguments.restype = (_HANDLE,), c_size_t
            for name in ("mgt_close", "mgt_builder_free"):
                getattr(opened, name).argtypes, getattr(opened, name).restype = (_HANDLE,), None
            for name in ("mgt_version_text", "mgt_error"):
                getattr(opened, name).restype = c_char_p
        except (OSError, AttributeError) as error:  # not there, or older than the package
            raise AbsentError(f"'{path}' cannot be used ({error}): install the library and the package together, or name the library in "
                              "MGPU_LIBRARY") from None
        _library = opened
    return _library


def call(name: str, *words) -> None:
    """Raises the exception of a call that fails, with the library's sentence."""
    opened = library()
    status = getattr(opened, name)(*words)
    if status != 0:
        raise error_of(status, opened.mgt_error().decode("utf-8", "replace"))


def error_of(status: int, message: str) -> Error:
    """The exception of an exit code."""
    return _ERRORS.get(status, Error)(message)


def version() -> str:
    """The library's version and commit, and what it was built with."""
    return library().mgt_version_text().decode()


def version_of(path: str) -> str:
    """The number alone, of the library at `path`."""
    opened = ctypes.CDLL(path)
    opened.mgt_version_text.restype = c_char_p
    return opened.mgt_version_text().decode().split()[1]


def milliseconds(seconds) -> int:
    """0 is the default."""
    return 0 if seconds is None else max(1, round(seconds * 1000))


def workers(threads: Optional[int]) -> int:
    """0 is as many as are worth it."""
    if threads is not None and not 0 < threads < 1 << 31:
        raise UsageError(f"threads {threads}: at least the calling thread replays; leave it out for as many as are worth it")
    return threads or 0


def text(string):
    return None if string is None else string.encode()
