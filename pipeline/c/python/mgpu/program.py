# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are open on a target: arrays in, a replay, arrays out."""

import atexit
import builtins
import ctypes
import os
import tempfile
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from mgpu import _arrays, _commands
from mgpu._library import (LOG, Argument, CountersSpec, Error, FactsSpec, FiguresSpec, Input, OpenOptions, RanksSpec, Time, UsageError, call, library, milliseconds,
                           text, workers)

_NUMPY = {"i1": "|b1", "i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "index": "<i8", "f16": "<f2", "bf16": "<u2", "f32": "<f4",
          "f64": "<f8", "f8E4M3FN": "|u1", "f8E5M2": "|u1"}


class NodeTime(NamedTuple):
    """When a node ran, in microseconds from the beginning of a replay."""
    name: str
    location: str
    start_us: float
    end_us: float


class Figures(NamedTuple):
    """What is predicted of a plan, and where its arguments lie. Uploads are copies in each replay of
    arguments that nothing writes; of resident ones they would be made once."""
    load_us: float
    replay_us: float
    fetch_us: float
    bound_us: float
    resident_arguments: int
    resident_bytes: int
    upload_arguments: int
    upload_bytes: int
    upload_us: float

    @classmethod
    def of(cls, spec: FiguresSpec) -> "Figures":
        return cls(*(getattr(spec, name) for name in cls._fields))


class Facts(NamedTuple):
    """What an open program is: `version` is that of the mgpu that made it; two bundles that are alike share
    their `hash`, and a program that was built here has none; `code` is what its kernels are for. The bytes
    are of its buffers, on the device that has most, on all devices and on the host; `options` are lines of what
    else decided a bundle."""
    name: str
    version: str
    hash: str
    source: str
    source_hash: str
    target: str
    code: str
    device: str
    num_devices: int
    num_nodes: int
    most_device_bytes: int
    device_bytes: int
    host_bytes: int
    options: str


class Counters(NamedTuple):
    """What a program did since it was opened; times are of replays, and quantiles within 1.6 %."""
    replays: int
    failures: int
    deadline_misses: int
    last_us: float
    total_us: float
    p50_us: float
    p90_us: float
    p99_us: float
    p999_us: float
    most_us: float
    audits: int
    differences: int


def metrics(path: Optional[str] = None) -> str:
    """The counters of all programs of this process that are open, as the text that Prometheus reads; with
    `path` written to that file too, whole."""
    out = ctypes.c_char_p()
    call("mgt_metrics_text", ctypes.byref(out))
    if path is not None:
        call("mgt_write_metrics", str(path).encode())
    return (out.value or b"").decode()


class Ranks(NamedTuple):
    """How the processes of one program meet, each of which has some of the host's devices. All open the
    same bundle, or build the same graph, and make the same calls in the same order."""
    how: Optional[str] = None
    """"openmpi", "mpich" or "tcp"; None is what mpirun, srun or torchrun's variables say."""
    rank: int = 0
    """This process, how many there are, and where rank 0 listens: for "tcp", where `count` is not 0."""
    count: int = 0
    address: str = ""
    port: int = 0
    communicator: int = 0
    """The address of an MPI_Comm, as MPI._addressof(comm) of mpi4py gives it; 0 is MPI_COMM_WORLD."""
    deadline: float = 120.0
    """The longest wait for another process, in seconds."""

    def spec(self) -> RanksSpec:
        return RanksSpec(how=text(self.how), communicator=self.communicator or None, rank=self.rank, count=self.count,
                         address=text(self.address or None), port=self.port, deadline_ms=milliseconds(self.deadline))


class Array:
    """An array on the host. numpy.asarray(), torch.from_dlpack() and memoryview(a.data) take it without a copy; tolist()
    needs nothing. Elements of bf16 and f8 are shown as their bits."""

    def __init__(self, kind: str, shape: Tuple[int, ...], owner: Any, writable: bool = True):
        self.type, self.shape, self._owner, self._writable = kind, shape, owner, writable

    @property
    def data(self) -> memoryview:
        """The elements, with their type and shape."""
        flat = memoryview(self._owner).cast("B")
        if not self._writable:
            flat = flat.toreadonly()
        if self.shape and 0 not in self.shape:
            return flat.cast(_arrays.TYPES[self.type][1], self.shape)
        return flat.cast(_arrays.TYPES[self.type][1])

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        address = ctypes.addressof(self._owner)
        return {"version": 3, "shape": self.shape, "typestr": _NUMPY[self.type], "data": (address, not self._writable)}

    def bits(self) -> "Array":
        """The same memory, whose truth values are integers of 8 bits."""
        return Array("i8", self.shape, self._owner, self._writable) if self.type == "i1" else self

    def __dlpack__(self, stream: Any = None) -> Any:
        return _arrays.to_dlpack(self.type, self.shape, ctypes.addressof(self._owner), self.__dlpack_device__(), self._owner)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 1, 0

    def tobytes(self) -> bytes:
        return bytes(memoryview(self._owner))

    def tolist(self) -> Any:
        values = self.data.tolist()
        return values if self.shape else values[0]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single number has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self.tolist()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        return f"mgpu.Array({self.type}, {self.shape})"


class DeviceArray:
    """An array on a GPU, the program's own memory: torch.as_tensor(a, device="cuda") and cupy.asarray(a)
    take it without a copy."""

    def __init__(self, kind: str, shape: Tuple[int, ...], address: int, owner: Any):
        self.type, self.shape, self._address, self._owner = kind, shape, address, owner

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        return {"version": 3, "shape": self.shape, "typestr": _NUMPY[self.type], "data": (self._address, False), "strides": None, "stream": None}

    def __repr__(self) -> str:
        return f"mgpu.DeviceArray({self.type}, {self.shape})"


def _bindable(value: Any, kind: str, argument: Argument) -> bool:
    """Whether the memory of a value can be an argument's, on the host."""
    try:
        view = memoryview(value)
    except TypeError:
        return False
    width = _arrays.TYPES[kind][0]
    isFit = not view.readonly and view.c_contiguous and view.nbytes == argument.bytes and view.itemsize in (1, width)
    return isFit and (not view.nbytes or ctypes.addressof(ctypes.c_char.from_buffer(view.cast("B"))) % width == 0)


_WRITTEN: List[Dict[str, Tuple[int, Any]]] = []
"""Arrays that a late step of a program that is closed may still write."""

_BEGAN: "weakref.WeakSet[Program]" = weakref.WeakSet()
"""Programs that began a run, which may call functions of this interpreter."""


def _wait_for_all() -> None:
    for program in list(_BEGAN):
        program._settle()  # pylint: disable=protected-access


atexit.register(_wait_for_all)


class Program:
    """A program on its target. Call it with arrays by name; it loads what is resident at the first
    call, replays once, and returns what it wrote. What is given for an argument on a device
    (Graph.external) is its memory from then on where it can be, and what the program writes there is
    in the array itself. One thread uses it at a time."""

    def __init__(self, handle: ctypes.c_void_p, target: str = "host"):
        self._handle: Optional[ctypes.c_void_p] = handle
        self._isLoaded = False
        self._guard = threading.RLock()  # swap() comes from any thread
        self._hasThread = False  # it began a run
        self._bound: Dict[str, Tuple[int, Any]] = {}  # address and owner, by name
        self._needed: Any = None  # what it was opened with and goes on using
        self._onGpu = target.startswith("cuda")
        self._isOneGpu = target.startswith("cuda:") and "," not in target
        self.arguments: Dict[str, Argument] = {}
        self.devices: Dict[str, int] = {}
        """The device that each argument lies on; -1 is the host."""
        for k in range(library().mgt_num_arguments(handle)):
            argument, device = Argument(), ctypes.c_int32()
            call("mgt_get_argument", handle, k, ctypes.byref(argument))
            call("mgt_argument_device", handle, k, ctypes.byref(device))
            self.arguments[argument.name.decode()] = argument
            self.devices[argument.name.decode()] = device.value
        rank, count = ctypes.c_uint32(), ctypes.c_uint32()
        call("mgt_get_rank", handle, ctypes.byref(rank), ctypes.byref(count))
        self.rank, self.num_ranks = rank.value, count.value

    def _open(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise UsageError("the program is closed")
        return self._handle

    def _find(self, name: str) -> Tuple[str, Tuple[int, ...], Argument]:
        argument = self.arguments.get(name)
        if argument is None:
            raise UsageError(f"the program has no argument '{name}'; there are {', '.join(self.arguments) or 'none'}")
        return argument.type.decode(), tuple(argument.shape[k] for k in range(argument.rank)), argument

    def write(self, name: str, value: Any) -> None:
        """Copies an array (or number) into an argument."""
        kind, shape, argument = self._find(name)
        data = _arrays.take(name, value, kind, shape)
        view = memoryview(data)
        native = view.nbytes and view.format.lstrip("@")[:1].isalpha()
        view = view.cast("B") if native else memoryview(view.tobytes())
        if view.nbytes != argument.bytes:
            raise UsageError(f"'{name}' has {argument.bytes} bytes, and {view.nbytes} are given")
        if view.readonly:
            call("mgt_write", self._open(), name.encode(), bytes(view), view.nbytes)
        else:
            address = (ctypes.c_char * view.nbytes).from_buffer(view) if view.nbytes else None
            call("mgt_write", self._open(), name.encode(), address, view.nbytes)

    def read(self, name: str) -> Array:
        """A copy of an argument or result."""
        kind, shape, argument = self._find(name)
        owner = (ctypes.c_char * argument.bytes)()
        call("mgt_read", self._open(), name.encode(), owner, argument.bytes)
        return Array(kind, shape, owner)

    def array(self, name: str) -> Union[Array, DeviceArray]:
        """The argument's own memory, to fill or read in place, without a copy: a DeviceArray of one on a
        GPU. It changes with each replay, and is gone when the program is closed."""
        kind, shape, _ = self._find(name)
        address, count = ctypes.c_void_p(), ctypes.c_size_t()
        call("mgt_memory", self._open(), name.encode(), ctypes.byref(address), ctypes.byref(count))
        if self._isOnGpu(name):
            return DeviceArray(kind, shape, address.value or 0, self)
        memory = type("Memory", (ctypes.c_char * count.value,), {})
        owner = memory.from_address(address.value or 0) if count.value else (ctypes.c_char * 0)()
        if count.value:
            owner.program = self  # it is not closed by itself while the array lives
        return Array(kind, shape, owner)

    def bind(self, name: str, value: Any) -> None:
        """From here on the array is the argument's or result's memory, and nothing is copied; what it
        holds is read and written by each replay. It has the buffer protocol, is writable and without
        gaps; for an argument on a GPU (Graph.external) it is an array on that GPU, with DLPack or
        `__cuda_array_interface__`. The program keeps it until it is bound anew or closed."""
        kind, shape, argument = self._find(name)
        if self._isOnGpu(name):
            address, owner = _arrays.on_gpu(name, value, kind, shape)
            memory: Any = ctypes.c_void_p(address)
        else:
            view = memoryview(value)
            if not _bindable(view, kind, argument):
                raise UsageError(f"'{name}' is bound to a writable array without gaps of {argument.bytes} bytes of {kind}, that begins at "
                                 f"a multiple of the {_arrays.TYPES[kind][0]} bytes of one")
            memory = owner = (ctypes.c_char * argument.bytes).from_buffer(view.cast("B"))
            address = ctypes.addressof(owner)
        with self._guard:
            if name not in self._bound or self._bound[name][0] != address:
                call("mgt_bind", self._open(), name.encode(), memory, argument.bytes)
            self._bound[name] = address, owner

    def _isOnGpu(self, name: str) -> bool:
        return self._onGpu and self.devices[name] >= 0

    def share(self, name: str, of: "Program", of_name: Optional[str] = None) -> None:
        """From here on the argument, on a device (Graph.external), is the memory of another program's
        argument: one state, or weights, of two programs. They are not replayed at once."""
        self._find(name)
        first, second = sorted((self, of), key=id)
        with first._guard, second._guard:
            call("mgt_share", self._open(), name.encode(), of._open(), (of_name or name).encode())
            self._bound[name] = 0, of._bound.get(of_name or name)

    def load(self) -> None:
        """Uploads what is resident, again where it is to start anew."""
        call("mgt_load", self._open())
        self._isLoaded = True

    def replay(self, times: int = 1) -> None:
        if not self._isLoaded:
            self.load()
        for _ in range(times):
            call("mgt_replay", self._open())

    def replay_on(self, stream: Any = 0) -> None:
        """One run behind the work of a CUDA stream; what the stream is given later follows it. `stream` is a
        torch.cuda.Stream, or the number of a cudaStream_t; 0 on the host. On one GPU it is queued, and on the
        host begun; else it has ended when this returns. Every other call on the program first waits for it."""
        if not self._isLoaded:
            self.load()
        if not self._onGpu:  # it is begun on a thread, which may call functions of this interpreter
            _BEGAN.add(self)
            self._hasThread = True
        call("mgt_replay_on", self._open(), getattr(stream, "cuda_stream", stream))

    def capture_into(self, stream: Any) -> None:
        """Makes a run a part of what a CUDA stream is being captured into (torch.cuda.graph): each launch of
        that graph is a run, which its caller orders. Arrays are not bound anew, nor programs swapped, after
        it. On one GPU only."""
        if not self._isLoaded:
            self.load()
        call("mgt_capture_into", self._open(), getattr(stream, "cuda_stream", stream))

    def replay_begin(self) -> None:
        """Begins one run on a thread of the library's; wait(), and every other call that runs the program or
        is about its arrays, returns once it has ended; past the deadline it is a LostError. Its arrays are
        left alone until then. The interpreter waits for it before it ends."""
        if not self._isLoaded:
            self.load()
        _BEGAN.add(self)
        self._hasThread = True
        call("mgt_replay_begin", self._open())

    def wait(self) -> None:
        """Returns once what replay_begin() and replay_on() began has ended."""
        call("mgt_wait", self._open())

    def swap(self, other: "Program") -> None:
        """Goes on as another program that is loaded and has the same arguments, which becomes what this was.
        It comes between two calls on this one, from any thread; arguments and results keep their values
        and arrays, but for what is resident. The other one has no run that was begun, shares no memory
        (share()), and has arrays bound only where this one has."""
        first, second = sorted((self, other), key=id)
        with first._guard, second._guard:
            try:
                call("mgt_swap", self._open(), other._open())
            except Error:  # the other may have some of the memory
                held = [*other._bound.values(), *self._bound.values()]
                other._bound = {f" {id(owner)}": (address, owner) for address, owner in held}  # each is bound anew
                raise
            for name in ("_needed", "_isLoaded", "_hasThread"):
                ours = getattr(self, name)
                setattr(self, name, getattr(other, name))
                setattr(other, name, ours)
            for program in (self, other):
                if program._hasThread:
                    _BEGAN.add(program)
            ours, its = self._bound, other._bound
            resident = {name for name, argument in self.arguments.items() if argument.role == b"resident"}
            # Residents go along, and the old program keeps its own arrays.
            self._bound = {**its, **{name: array for name, array in ours.items() if name not in resident}}
            other._bound = dict(ours)

    def _settle(self) -> None:
        """Waits for what was begun, whatever becomes of it."""
        with self._guard:
            if self._handle is not None:
                library().mgt_wait(self._handle)

    def audit(self) -> str:
        """Replays once and compares with a reference: "", or which node wrote something else first. The
        program was loaded with `audit`."""
        if not self._isLoaded:
            self.load()
        return self._text("mgt_audit")

    def fetch(self) -> None:
        """Brings back what is resident and was written."""
        call("mgt_fetch", self._open())

    def __call__(self, **arrays: Any) -> Dict[str, Any]:
        isBehind = False  # what others do on the GPU comes first
        for name, value in arrays.items():
            kind, _, argument = self._find(name)
            if self._isOnGpu(name) and _arrays.is_on_gpu(value):
                self.bind(name, value)
                isBehind = self._isOneGpu
            elif self.devices[name] >= 0 and not self._onGpu and _bindable(value, kind, argument):
                self.bind(name, value)
            else:
                self.write(name, value)
        if isBehind:
            self.replay_on(0)
        else:
            self.replay()
        self.fetch()
        if self.rank != 0:
            return {}  # rank 0 has what was written
        return {name: arrays[name] if name in arrays and name in self._bound else self.read(name)
                for name, argument in self.arguments.items() if argument.role in (b"output", b"inout")}

    def _text(self, name: str) -> str:
        out = ctypes.c_char_p()
        call(name, self._open(), ctypes.byref(out))
        return out.value.decode()

    def plan_text(self) -> str:
        """The plan, as `mgpu-tune plan -o` writes it."""
        return self._text("mgt_plan_text")

    def figures(self) -> Figures:
        """What is predicted of the plan that is replayed."""
        spec = FiguresSpec()
        call("mgt_get_figures", self._open(), ctypes.byref(spec))
        return Figures.of(spec)

    def facts(self) -> Facts:
        """What it is."""
        spec = FactsSpec()
        with self._guard:  # a swap or close frees the strings
            call("mgt_get_facts", self._open(), ctypes.byref(spec))
            values = [getattr(spec, name) for name in Facts._fields]
        return Facts(*(value.decode() if isinstance(value, bytes) else value for value in values))

    def counters(self) -> Counters:
        """What it did; from any thread."""
        spec = CountersSpec()
        call("mgt_get_counters", self._open(), ctypes.byref(spec))
        return Counters(*(getattr(spec, name) for name in Counters._fields))

    def configuration(self) -> str:
        """What was tuned for it and is used; "" where nothing was, and of a bundle."""
        return self._text("mgt_configuration")

    def explain(self) -> str:
        """The plan in words."""
        return self._text("mgt_explain")

    def times(self) -> List[NodeTime]:
        """Replays once and says when each node ran."""
        if not self._isLoaded:
            self.load()
        rows, count = ctypes.POINTER(Time)(), ctypes.c_size_t()
        call("mgt_times", self._open(), ctypes.byref(rows), ctypes.byref(count))
        return [NodeTime(rows[k].name.decode(), rows[k].location.decode(), rows[k].start_us, rows[k].end_us) for k in range(count.value)]

    def close(self) -> None:
        """Waits for what was begun and frees what it has; arrays of array() must not be used any more."""
        with self._guard:
            if self._handle is None:
                return
            self._settle()
            if self.counters().deadline_misses:
                _WRITTEN.append(dict(self._bound, **{"": (0, self._needed)}))
            handle, self._handle = self._handle, None
            library().mgt_close(handle)
            self._bound.clear()
            self._needed = None

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()


def load(path: Union[str, bytes, bytearray, memoryview], target: str = "host", ranks: Optional[Ranks] = None, deadline: Optional[float] = None,
         threads: Optional[int] = None, cpu: Optional[str] = None, pin: bool = False, memory: Optional[str] = None,
         roles: Optional[Dict[str, str]] = None, log: Optional[Callable[[int, str], Any]] = None, ranges: bool = False,
         audit: int = 0, on_difference: str = "go on", fresh: Tuple[str, ...] = (),
         constants: Optional[Dict[str, Any]] = None, weights: Optional[str] = None,
         nccl: Optional[str] = None) -> Program:
    """Opens a bundle, a file's or the bytes of one, with `ranks` together with other processes. `constants` are values of
    resident arguments that lie beside it, as weights of a mapped file: arrays without gaps that nobody writes. On the host
    they are read where they lie if they begin at a multiple of 64 bytes, else copied. `weights` is a `.pt2` file, mapped, with the values of arguments
    that it has weights or constants for; the program is lost once that file is written. `deadline` are the seconds that a load,
    replay or fetch may take, after which the program is lost; arrays bound to it must live on then. Its
    buffers take at most `memory` ("4GB"). `roles` are other ones than the bundle's by name or pattern, and
    none may change the plan. `log` is told a level (0: what happens, 1: warnings, 2: faults) and a line.
    Each replay of `audit` is compared with a reference; after a difference the program may "go on", "stop"
    or "fall back" to the reference; one of `fresh` that was not written anew is a difference. `nccl` are
    settings of NCCL on several GPUs, as the command's --nccl has them.
    With `ranges` replays, and nodes on the host, are ranges of NVTX. On the host `threads` replay, the calling one among them (None: as many as are worth
    it), with kernels for the level `cpu` ("x86-64-v3"; None: the best of the bundle), and with `pin` each
    stays on a CPU of its own."""
    handle, options = ctypes.c_void_p(), OpenOptions(deadline_ms=milliseconds(deadline), threads=workers(threads), cpu=text(cpu), pin=pin)
    if ranks is not None:
        options.ranks = ctypes.pointer(ranks.spec())
    options.memory, options.ranges, options.weights, options.nccl = (
        text(memory), ranges, text(weights), text(nccl))
    actions = ("go on", "stop", "fall back")
    if on_difference not in actions or not 0 <= audit < 1 << 31:
        raise UsageError(f"on_difference is one of {', '.join(actions)}, and audit a number of replays")
    options.audit, options.audit_action, options.audit_fresh = audit, actions.index(on_difference), text(",".join(fresh) or None)
    options.roles = text(",".join(f"{name}={role}" for name, role in roles.items())) if roles else None
    if log is not None:
        options.log = LOG(lambda _, level, line: log(level, line.decode("utf-8", "replace")))
    values = [(name, memoryview(value).cast("B")) for name, value in (constants or {}).items()]
    options.num_constants = len(values)
    options.constants = (Input * len(values))(*((name.encode(), _arrays.address_of(view), view.nbytes) for name, view in values))
    if isinstance(path, (bytes, bytearray, memoryview)):
        contents = bytes(path)
        call("mgt_open_memory", contents, len(contents), text(target), ctypes.byref(options), ctypes.byref(handle))
    else:
        call("mgt_open_with", str(path).encode(), text(target), ctypes.byref(options), ctypes.byref(handle))
    program = Program(handle, target)
    program._needed = options.log, values  # pylint: disable=protected-access
    return program


def open(path: str, target: str = "host", *words: str, functions: Optional[Dict[str, Any]] = None,  # pylint: disable=redefined-builtin
         **options: Any) -> Program:
    """Opens a program that mgpu-tune reads (MLIR as text or bytecode, an export of JAX's, a `.pt2`), or a bundle. It is
    compiled by `mgpu-tune bundle`, with `words` as its options ("--dim", "batch=8"); the others are load()'s. A `.pt2`
    gives its weights as well, mapped; write() changes them until the program is loaded.
    `functions` are register()ed for custom calls of their names."""
    from mgpu.functions import register  # pylint: disable=import-outside-toplevel,cyclic-import
    for name, function in (functions or {}).items():
        register(name, function)
    begin = _begin(path)
    if begin == _BUNDLE:
        if words:
            raise UsageError(f"'{path}' is a bundle, which is compiled: it takes no {words[0]}")
        return load(path, target, **options)
    with tempfile.TemporaryDirectory(prefix="mgpu-open-") as folder:
        bundle = os.path.join(folder, "program.mgpu")
        _commands.run(["bundle", "-o", bundle, "--target", target, *_commands.host_level(target, options.get("cpu")),
                       *(word for name in functions or () for word in ("--custom", f"{name}=registered")), *words, "--",
                       str(path)])
        if begin.startswith(b"PK\3\4"):  # a zip
            options.setdefault("weights", str(path))
        return load(bundle, target, **options)


_BUNDLE = b"SQLite format 3\0"


def _begin(path: str) -> bytes:
    try:
        with builtins.open(path, "rb") as file:
            return file.read(len(_BUNDLE))
    except OSError:
        return b""  # mgpu-tune says why
