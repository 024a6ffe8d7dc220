# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that are built by calls, in program order."""

import contextlib
import ctypes
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from mgpu import _arrays, _library
from mgpu._library import UsageError, call, library, text
from mgpu.program import Figures, Program, Ranks

HOST = -1
_KINDS = {"argument": 0, "result": 1, "temporary": 2, "resident": 3, "constant": 4, "external": 5}
_REDUCTIONS = {"sum": 0, "prod": 1, "min": 2, "max": 3}
_COLLECTIVES = {"all_reduce": 0, "all_gather": 1, "reduce_scatter": 2, "all_to_all": 3, "permute": 4, "broadcast": 5, "send_recv": 6}
_PARTS = {"forward": 0, "backward": 1, "weights": 2}
_ACCESS = {"r": 1, "w": 2, "rw": 3, "ptr": 0}
_PACKAGE = os.path.dirname(os.path.abspath(__file__))

Shape = Union[int, Sequence[int]]


def _tuple(shape: Shape) -> Tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)


def _int64s(figures: Sequence[int]) -> Any:
    try:
        return (ctypes.c_int64 * len(figures))(*figures)
    except OverflowError:
        raise UsageError(f"{tuple(figures)} has a number of more than 64 bits") from None


class Buffer:
    """A buffer or a part of one. x[2:6], x[:, 0] and x.reshape() are parts of x; nothing is copied."""

    def __init__(self, graph: "Graph", number: int, name: str, kind: str, device: int, shape: Tuple[int, ...],
                 strides: Optional[Tuple[int, ...]] = None, offset: int = 0):
        self._graph, self._number, self.name = graph, number, name
        self.type, self.device, self.shape, self._offset = kind, device, shape, offset
        if strides is None:
            strides, step = (), 1
            for size in reversed(shape):
                strides, step = (step, *strides), step * size
        self._strides = strides

    def _part(self, shape: Tuple[int, ...], strides: Tuple[int, ...], offset: int) -> "Buffer":
        return Buffer(self._graph, self._number, self.name, self.type, self.device, shape, strides, offset)

    def __getitem__(self, index: Any) -> "Buffer":
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis in index:
            at = index.index(Ellipsis)
            index = index[:at] + (slice(None),) * (len(self.shape) - len(index) + 1) + index[at + 1:]
        if len(index) > len(self.shape):
            raise UsageError(f"'{self.name}' has {len(self.shape)} dimensions, and {len(index)} indices are given")
        index += (slice(None),) * (len(self.shape) - len(index))
        shape, strides, offset = [], [], self._offset
        for each, size, stride in zip(index, self.shape, self._strides):
            if isinstance(each, slice):
                start, stop, step = each.indices(size)
                shape.append(len(range(start, stop, step)))
                strides.append(stride * step)
                offset += start * stride if shape[-1] else 0
                continue
            at = each + size if each < 0 else each
            if not 0 <= at < size:
                raise UsageError(f"index {each} is outside of '{self.name}', whose size there is {size}")
            offset += at * stride
        return self._part(tuple(shape), tuple(strides), offset)

    def reshape(self, *shape: Any) -> "Buffer":
        """The same elements in another shape, where they have no gaps."""
        new = _tuple(shape[0] if len(shape) == 1 else shape)
        count = [1, 1]
        for k, sizes in enumerate((self.shape, new)):
            for size in sizes:
                count[k] *= size
        if count[0] != count[1] or not _arrays._contiguous(self.shape, self._strides):
            raise UsageError(f"'{self.name}' of shape {self.shape} cannot be seen as {new} without a copy")
        strides, step = (), 1
        for size in reversed(new):
            strides, step = (step, *strides), step * size
        return self._part(new, strides, self._offset)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    def __repr__(self) -> str:
        where = "host" if self.device == HOST else f"device {self.device}"
        return f"mgpu.Buffer('{self.name}', {self.type}, {self.shape}, {where})"

    def _view(self) -> _library.View:
        rank = len(self.shape)
        sizes, strides = _int64s(self.shape or (0,)), _int64s(self._strides or (0,))
        return _library.View(self._number, _int64s((self._offset,))[0], rank, sizes, strides)


class Kernel:
    """A kernel of a graph; a call of it is a launch."""

    def __init__(self, graph: "Graph", number: int, name: str, params: Tuple[str, ...]):
        self._graph, self._number, self.name, self.params = graph, number, name, params

    def __call__(self, *args: Any, grid: Shape = 1, device: Optional[int] = None, reads: Sequence[Buffer] = (), writes: Sequence[Buffer] = (),
                 name: Optional[str] = None, flops: float = 0, microseconds: float = 0, most_bytes: Optional[Mapping[int, int]] = None) -> None:
        """Launches it on `device`, else on that of its buffers. `reads` and `writes` are what it touches
        beside what its parameters say. What it takes is modelled by its `flops` and the bytes of its buffers;
        `most_bytes` says of an argument, by its place, that fewer are touched, as of a table of which it looks
        a few rows up. Or `microseconds` says it."""
        if len(args) != len(self.params):
            raise UsageError(f"kernel '{self.name}' takes {len(self.params)} arguments, and {len(args)} are given")
        rows = [self._graph._arg(self.name, mode, value) for mode, value in zip(self.params, args)]
        rows += [_library.Arg(4 | access, each._view(), None, 0) for access, list_ in ((1, reads), (2, writes)) for each in list_]
        if device is None:
            found = {each.device for each in (*args, *reads, *writes) if isinstance(each, Buffer) and each.device != HOST}
            if not found:
                raise UsageError(f"kernel '{self.name}' is launched without a buffer of a device: copy to one what is on the host")
            if len(found) != 1:
                raise UsageError(f"kernel '{self.name}' is launched with buffers of devices {sorted(found)}: copy them to one of these")
            device = found.pop()
        sizes = _tuple(grid)
        if not 1 <= len(sizes) <= 3 or not all(0 < size < 1 << 32 for size in sizes):
            raise UsageError(f"kernel '{self.name}' is launched with grid {sizes}: give one to three sizes of at least 1")
        array = (_library.Arg * len(rows))(*rows)
        if most_bytes and not all(0 <= k < len(args) and bytes_ > 0 for k, bytes_ in most_bytes.items()):
            raise UsageError(f"kernel '{self.name}' is launched with most_bytes {dict(most_bytes)}: give bytes by the places of its arguments")
        most = (ctypes.c_uint64 * len(rows))(*((most_bytes or {}).get(k, 0) for k in range(len(rows))))
        self._graph._call("mgt_builder_launch", ctypes.byref(_library.LaunchSpec(
            kernel=self._number, device=device, grid=(ctypes.c_uint32 * 3)(*sizes), num_args=len(rows), args=array, name=text(name),
            flops=flops, microseconds=microseconds, most_bytes=most)))


class Tuned(NamedTuple):
    """What Graph.tune() found: microseconds of a replay as it would be without and with it."""
    default_us: float
    tuned_us: float
    is_default: bool
    """Nothing beats the default."""
    is_known: bool
    """An earlier call had found it."""
    text: str
    """The times in words."""


class Plan:
    """How a graph is to be run."""

    def __init__(self, graph: "Graph", options: Dict[str, Any]):
        self._graph, self._options = graph, options
        self.text = graph._text("mgt_builder_plan_text", options)

    def figures(self) -> Figures:
        """What is predicted of it: microseconds, and where its arguments lie."""
        spec = _library.FiguresSpec()
        self._graph._call("mgt_builder_figures", ctypes.byref(_plan_options(**self._options)), ctypes.byref(spec))
        return Figures.of(spec)

    def explain(self) -> str:
        """The plan in words: where and when each node is expected to run, and why then."""
        return self._graph._text("mgt_builder_explain", self._options)

    def open(self, target: str = "host") -> Program:
        return self._graph.open(target, **self._options)

    def save(self, path: str, **forms: Any) -> None:
        self._graph.save(path, **forms, **self._options)


class Graph:
    """A program that is built by calls, in program order. Each call says what it reads and writes; what
    must follow what is found from that. A call that fails raises and changes nothing."""

    def __init__(self, devices: int = 1, name: str = "main"):
        self._handle = ctypes.c_void_p()
        self._numbers = 0
        self._inputs: Dict[str, Buffer] = {}
        call("mgt_builder_new", name.encode(), devices, ctypes.byref(self._handle))
        self.devices = devices

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            library().mgt_builder_free(self._handle)

    def _call(self, name: str, *words: Any) -> None:
        frame = sys._getframe(1)
        while frame and (os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE) or frame.f_code.co_filename == contextlib.__file__):
            frame = frame.f_back
        place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""
        call("mgt_builder_place", self._handle, place.encode("utf-8", "replace"))
        call(name, self._handle, *words)

    def _text(self, name: str, options: Dict[str, Any]) -> str:
        out = ctypes.c_char_p()
        self._call(name, ctypes.byref(_plan_options(**options)), ctypes.byref(out))
        return out.value.decode()

    def _arg(self, kernel: str, mode: str, value: Any) -> _library.Arg:
        if mode not in _ACCESS:
            bits = int.from_bytes(_arrays.number_bytes(mode, value), "little")
            return _library.Arg(0, _library.View(), mode.encode(), bits)
        if not isinstance(value, Buffer):
            raise UsageError(f"kernel '{kernel}' takes a buffer where its params have '{mode}', not {type(value).__name__}")
        self._require(value)
        return _library.Arg(_ACCESS[mode], value._view(), None, 0)

    def _require(self, *buffers: Buffer) -> None:
        for each in buffers:
            if not isinstance(each, Buffer) or each._graph is not self:
                raise UsageError(f"{each!r} is no buffer of this graph")

    def _buffer(self, kind: str, name: Optional[str], shape: Shape, dtype: Any, device: int = HOST, role: Optional[str] = None,
                contents: Any = None) -> Buffer:
        self._numbers += 1
        name, word, sizes = name or f"{kind}{self._numbers}", _arrays.type_name(dtype), _tuple(shape)
        data = None
        if contents is not None:
            data = bytes(memoryview(_arrays.take(name, contents, word, sizes)).cast("B"))
        number = ctypes.c_uint32()
        spec = _library.BufferSpec(name=name.encode(), kind=_KINDS[kind], device=device, type=word.encode(), rank=len(sizes),
                                   shape=_int64s(sizes), role=text(role), contents=ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))
        self._call("mgt_builder_buffer", ctypes.byref(spec), ctypes.byref(number))
        buffer = Buffer(self, number.value, name, word, device, sizes)
        if kind in ("argument", "external"):
            self._inputs[name] = buffer
        return buffer

    def input(self, name: str, shape: Shape = (), dtype: Any = "f32", role: Optional[str] = None) -> Buffer:
        """An array of the caller's, on the host. `role`: "resident" for what is uploaded once, as weights;
        "inout" or "output" for what the program writes; "dynamic" for a number that kernels read."""
        return self._buffer("argument", name, shape, dtype, role=role)

    def output(self, name: str, shape: Shape, dtype: Any = "f32") -> Buffer:
        """An array that the program makes, on the host."""
        return self._buffer("result", name, shape, dtype)

    def empty(self, shape: Shape, dtype: Any = "f32", device: int = 0, name: Optional[str] = None) -> Buffer:
        """Memory of a device within one replay; where it is made inside a loop, within one trip."""
        return self._buffer("temporary", name, shape, dtype, device)

    def resident(self, shape: Shape, dtype: Any = "f32", device: int = 0, name: Optional[str] = None) -> Buffer:
        """Memory of a device that lives from replay to replay; zeros at first."""
        return self._buffer("resident", name, shape, dtype, device)

    def external(self, name: str, shape: Shape, dtype: Any = "f32", device: int = 0) -> Buffer:
        """Memory of the caller's on a device, on which kernels and collectives work where it is: a torch
        tensor on a GPU, on the host target any array. Call, bind() or share() give it."""
        return self._buffer("external", name, shape, dtype, device)

    def constant(self, value: Any, shape: Shape, dtype: Any = "f32", name: Optional[str] = None) -> Buffer:
        """An array with fixed contents, on the host."""
        return self._buffer("constant", name, shape, dtype, contents=value)

    def kernel(self, entry: str, params: Sequence[str], *, cuda: Optional[str] = None, host: Optional[str] = None,
               cubins: Optional[Mapping[str, bytes]] = None, block: Shape = 1, tunables: Optional[Mapping[str, Sequence[int]]] = None,
               rules: Sequence[str] = (), name: Optional[str] = None, host_entry: Optional[str] = None, dynamic_shared_bytes: int = 0) -> Kernel:
        """A kernel: CUDA C++, cubins by architecture ("sm_90"), or C++ that computes one block on the host.

        `params` has a word for each parameter: "r", "w" or "rw" for a pointer to what it reads or writes,
        "ptr" for one whose uses the launch names, else the type of a number ("f32", "i64"). `tunables` are
        macros with the values they may have, the default first, and `rules` what the values keep to:
        "TILE * STAGES <= 48", "ITEMS == 2 * UNROLL", "ITEMS % UNROLL == 0"."""
        words = tuple(word if word in _ACCESS else _arrays.type_name(word) for word in params)
        sizes = _tuple(block)
        if not 1 <= len(sizes) <= 3 or not all(0 < size <= 1024 for size in sizes):
            raise UsageError(f"kernel '{entry}' has block {sizes}: give one to three sizes of 1 to 1024")
        macros = [(key.encode(), (ctypes.c_uint32 * len(values))(*values), len(values)) for key, values in (tunables or {}).items()]
        forms = [_library.Cubin(arch.encode(), data, len(data)) for arch, data in (cubins or {}).items()]
        number = ctypes.c_uint32()
        spec = _library.KernelSpec(
            name=text(name), entry=entry.encode(), host_entry=text(host_entry), cuda=text(cuda), host=text(host),
            block=(ctypes.c_uint32 * 3)(*sizes), dynamic_shared_bytes=dynamic_shared_bytes, num_tunables=len(macros),
            tunables=(_library.Tunable * len(macros))(*(_library.Tunable(key, count, values) for key, values, count in macros)),
            num_cubins=len(forms), cubins=(_library.Cubin * len(forms))(*forms), num_rules=len(rules),
            rules=(ctypes.c_char_p * len(rules))(*map(text, rules)))
        self._call("mgt_builder_kernel", ctypes.byref(spec), ctypes.byref(number))
        return Kernel(self, number.value, name or entry, words)

    def copy(self, destination: Buffer, source: Buffer, name: Optional[str] = None) -> None:
        """Copies as many elements of one type, between any two places."""
        self._require(destination, source)
        self._call("mgt_builder_copy_as", ctypes.byref(destination._view()), ctypes.byref(source._view()), text(name))

    def fill(self, destination: Buffer, value: Any) -> None:
        self._require(destination)
        data = _arrays.number_bytes(destination.type, value)
        self._call("mgt_builder_fill", ctypes.byref(destination._view()), data, len(data))

    def _collective(self, kind: str, send: Sequence[Buffer], receive: Optional[Sequence[Buffer]], op: str = "sum", axis: int = 0,
                    concat: int = 0, root: int = 0, pairs: Sequence[Tuple[int, int]] = ()) -> None:
        receive = send if receive is None else receive
        self._require(*send, *receive)
        if op not in _REDUCTIONS:
            raise UsageError(f"{kind}: there is no reduction '{op}'; there are {', '.join(_REDUCTIONS)}")
        if len(send) != len(receive):
            raise UsageError(f"{kind}: {len(send)} buffers are sent and {len(receive)} received")
        ranks = [rank for pair in pairs for rank in pair]
        if any(not 0 <= rank < len(send) for rank in ranks) or len(ranks) != 2 * len(pairs):
            raise UsageError(f"{kind}: {list(pairs)} are no pairs of {len(send)} ranks")
        views = [(_library.View * len(list_))(*(each._view() for each in list_)) for list_ in (send, receive)]
        self._call("mgt_builder_collective", ctypes.byref(_library.CollectiveSpec(
            kind=_COLLECTIVES[kind], reduction=_REDUCTIONS[op], num_members=len(send), send=views[0], receive=views[1], axis=axis,
            concat_axis=concat, root=root, num_pairs=len(pairs), pairs=(ctypes.c_uint32 * len(ranks))(*ranks))))

    def all_reduce(self, buffers: Sequence[Buffer], op: str = "sum", out: Optional[Sequence[Buffer]] = None) -> None:
        """Every device gets the sum (prod, min, max) of all; in place without `out`."""
        self._collective("all_reduce", buffers, out, op=op)

    def all_gather(self, send: Sequence[Buffer], receive: Sequence[Buffer], axis: int = 0) -> None:
        self._collective("all_gather", send, receive, axis=axis)

    def reduce_scatter(self, send: Sequence[Buffer], receive: Sequence[Buffer], op: str = "sum", axis: int = 0) -> None:
        self._collective("reduce_scatter", send, receive, op=op, axis=axis)

    def all_to_all(self, send: Sequence[Buffer], receive: Sequence[Buffer], split: int = 0, concat: Optional[int] = None) -> None:
        self._collective("all_to_all", send, receive, axis=split, concat=split if concat is None else concat)

    def permute(self, send: Sequence[Buffer], receive: Sequence[Buffer], pairs: Sequence[Tuple[int, int]]) -> None:
        """Rank s sends to rank t for each pair (s, t); who receives nothing gets zeros."""
        self._collective("permute", send, receive, pairs=pairs)

    def broadcast(self, buffers: Sequence[Buffer], root: int = 0) -> None:
        self._collective("broadcast", buffers, None, root=root)

    def send_recv(self, source: Buffer, destination: Buffer) -> None:
        self._collective("send_recv", [source, source], [destination, destination])

    @contextlib.contextmanager
    def loop(self, trips: int, first: int = 0, step: int = 1) -> Iterator[Buffer]:
        """`with g.loop(100) as i:` repeats what is called inside, from one graph. Kernels read i, an i64,
        through a pointer."""
        number = ctypes.c_uint32()
        self._call("mgt_builder_begin_loop", trips, first, step, ctypes.byref(number))
        try:
            yield Buffer(self, number.value, "induction", "i64", HOST, ())
        except BaseException:
            self._call("mgt_builder_drop_loop")
            raise
        self._call("mgt_builder_end_loop")

    @contextlib.contextmanager
    def part(self, kind: str, microbatch: int, stage: int = 0) -> Iterator[None]:
        """`with g.part("backward", 3, stage=1):` says what the calls inside compute of a pipeline: "forward",
        "backward", or "weights", the backward work that no other stage waits for. Reports are coloured by it."""
        if kind not in _PARTS:
            raise UsageError(f"there is no part '{kind}' of a pipeline; there are {', '.join(_PARTS)}")
        self._call("mgt_builder_part", _PARTS[kind], microbatch, stage)
        try:
            yield
        finally:
            self._call("mgt_builder_part", -1, 0, 0)

    def check(self, probe: bool = False) -> None:
        """Raises where what was built so far is no program; with `probe` also where a kernel, run on the
        host in memory of its own, touches what its launch does not say."""
        self._call("mgt_builder_probe" if probe else "mgt_builder_check")

    def plan(self, **options: Any) -> Plan:
        """Plans it; open() and save() take the same options: scheduler ("list", "serial", "shuffled" with
        `seed`), streams (of each device), transforms (as mgpu-tune's --transforms), threads, memory (of each
        device, "4GB"). With `machine` ("sim:dgx-h200", "cuda:0") it is planned for that target, by a search of
        `budget` ("2s", "100" plans).
        open() takes `tuned=False` to use the default whatever was tuned, `deadline`, the seconds that a step
        on a GPU may take, and on the host `threads`, `cpu` and `pin`, as mgpu.load() has them."""
        return Plan(self, options)

    def open(self, target: str = "host", **options: Any) -> Program:
        """Plans it, compiles its kernels, and opens it on a target ("host", "host:4", "cuda:0"): as tune()
        found, unless the options choose a schedule."""
        handle = ctypes.c_void_p()
        self._call("mgt_builder_open", text(target), ctypes.byref(_plan_options(**options)), ctypes.byref(handle))
        return Program(handle, target)

    def tune(self, target: str = "host", budget: Union[str, int] = "60s", *, seed: int = 0, progress: Optional[Callable[[str], Any]] = None,
             **arrays: Any) -> Tuned:
        """Searches for the fastest plan, tunables and threads on a target, for a time ("60s") or a number of
        candidates, and remembers it: open() then uses it. `arrays` are values of inputs, others are made
        up; `progress` hears of it. Candidates run in forked processes: on a GPU tune before anything in
        the process uses CUDA."""
        given = {name: bytes(memoryview(self._value(name, value)).cast("B")) for name, value in arrays.items()}
        inputs = [_library.Input(name.encode(), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data)) for name, data in given.items()]
        raised: List[BaseException] = []

        def hear(_: Any, line: bytes) -> int:
            try:
                if progress is not None:
                    progress(line.decode())
                return 0
            except BaseException as error:  # as of Ctrl-C: the search ends, and what was found is kept
                raised.append(error)
                return 1

        found, words = _library.TunedSpec(), ctypes.c_char_p()
        self._call("mgt_builder_tune", text(target), ctypes.byref(_library.TuneOptions(
            budget=str(budget).encode(), seed=seed, num_inputs=len(inputs), inputs=(_library.Input * len(inputs))(*inputs),
            progress=_library.PROGRESS(hear))), ctypes.byref(found), ctypes.byref(words))
        if raised:
            raise raised[0]
        return Tuned(found.default_us, found.tuned_us, bool(found.is_default), bool(found.is_known), words.value.decode())

    def _value(self, name: str, value: Any) -> Any:
        if name not in self._inputs:
            raise UsageError(f"the graph has no input '{name}'; there are {', '.join(self._inputs) or 'none'}")
        buffer = self._inputs[name]
        return _arrays.take(name, value, buffer.type, buffer.shape)

    def save(self, path: Any, *, cpu: Optional[str] = None, arch: Optional[str] = None, alternatives: int = 0, **options: Any) -> None:
        """Writes a bundle, for CPU levels ("x86-64-v2,x86-64-v3", "none") and GPUs ("sm_80,sm_90"); with
        `alternatives` more values of tunables, for `mgpu-tune tune` to choose among on the host."""
        plan = _plan_options(**options)
        self._call("mgt_builder_save", os.fspath(path).encode(), ctypes.byref(_library.SaveOptions(
            plan=ctypes.pointer(plan), cpu=text(cpu), arch=text(arch), alternatives=alternatives)))


def _plan_options(scheduler: Optional[str] = None, seed: int = 0, streams: int = 0, transforms: Optional[str] = None,
                  threads: Optional[int] = None, machine: Optional[str] = None, budget: Optional[str] = None, tuned: bool = True,
                  deadline: Optional[float] = None, ranks: Optional[Ranks] = None, memory: Optional[str] = None,
                  cpu: Optional[str] = None, pin: bool = False) -> _library.PlanOptions:
    shared = ctypes.pointer(ranks.spec()) if ranks is not None else None
    return _library.PlanOptions(scheduler=text(scheduler), seed=seed, streams=streams, transforms=text(transforms), threads=_library.workers(threads),
                                machine=text(machine), budget=text(budget), no_tuned=not tuned, deadline_ms=_library.milliseconds(deadline),
                                ranks=shared, memory=text(memory), cpu=text(cpu), pin=pin)
