# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""As much of PyTorch as tests/gpu/torch_graphs.py and examples/embed/tensor.py call, over the driver that
is not there.

A graph captures nothing: what is launched while it should is done at once, and a replay is
no more. So nothing here says how PyTorch behaves, only that the script gets through.
"""

import contextlib
import ctypes

__version__ = "0 (a test double)"
int32, float32 = "int32", "float32"
_ELEMENTS = {int32: (ctypes.c_int32, "<i4"), float32: (ctypes.c_float, "<f4")}
_driver = ctypes.CDLL("libcuda.so.1")


def _check(code):
    if code != 0:
        raise RuntimeError(f"the driver says {code}")


def _call(name, *arguments):
    function = ctypes.c_void_p()
    _check(_driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(function), 13000, ctypes.c_uint64(0), None))
    _check(ctypes.CFUNCTYPE(ctypes.c_int)(function.value)(*arguments))


class _Tensor:
    def __init__(self, count, dtype):
        address = ctypes.c_uint64()
        _call("cuMemAlloc", ctypes.byref(address), ctypes.c_size_t(4 * count))
        self.address, self.count, self.dtype = address.value, count, dtype
        ctypes.memset(self.address, 0, 4 * count)

    def zero_(self):
        ctypes.memset(self.address, 0, 4 * self.count)

    def fill_(self, value):
        self._numbers()[:] = [value] * self.count
        return self

    def data_ptr(self):
        return self.address

    def tolist(self):
        return list(self._numbers())

    @property
    def __cuda_array_interface__(self):
        return {"version": 3, "shape": (self.count,), "typestr": _ELEMENTS[self.dtype][1], "data": (self.address, False), "strides": None}

    def _numbers(self):
        return (_ELEMENTS[self.dtype][0] * self.count).from_address(self.address)

    def __getitem__(self, index):
        if isinstance(index, slice):
            part = (_ELEMENTS[self.dtype][0] * len(range(*index.indices(self.count))))(*self._numbers()[index])
            return memoryview(part).cast("B").cast(_ELEMENTS[self.dtype][1][1])
        return self._numbers()[index % self.count]


def zeros(count, dtype=float32, device="cuda"):
    assert device == "cuda"
    cuda._open()
    return _Tensor(count, dtype)


def ones(count, dtype=float32, device="cuda"):
    return zeros(count, dtype, device).fill_(1)


class cuda:
    _is_open = False

    @staticmethod
    def _open():
        if cuda._is_open:
            return
        device, context = ctypes.c_int(), ctypes.c_void_p()
        _call("cuInit", 0)
        _call("cuDeviceGet", ctypes.byref(device), 0)
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        _call("cuCtxPushCurrent", context)
        cuda._is_open = True

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def synchronize():
        pass

    class Stream:
        cuda_stream = 0

        def wait_stream(self, other):
            assert isinstance(other, cuda.Stream)

        def wait_event(self, event):
            assert event.recorded

    class Event:
        def __init__(self, enable_timing=False):
            self.timed, self.recorded = enable_timing, False

        def record(self, stream=None):
            self.recorded = True

        def elapsed_time(self, end):
            assert self.timed and end.timed and self.recorded and end.recorded
            return 0.001

    class CUDAGraph:
        captured = False

        def replay(self):
            assert self.captured

    @staticmethod
    @contextlib.contextmanager
    def graph(graph, stream=None):
        yield
        graph.captured = True
