#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python package: arrays in and out, messages at the caller's line, bundles, plans and times."""

import array
import contextlib
import ctypes
import json
import mmap
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import mgpu
from mgpu import _arrays

SCALE = """void scale(mgpu_block block, float *y, const float *x, float a) {
  for (uint32_t t = 0; t < block.size.x; t += ITEMS)
    for (int k = 0; k < ITEMS; ++k)
      y[block.index.x * block.size.x + t + k] = a * x[block.index.x * block.size.x + t + k];
}"""


ADD = "void add(mgpu_block, float *y, const float *x) { for (int i = 0; i < 4; ++i) y[i] += x[i]; }"


def saveCopyOfWeights(path, n):
    """A bundle whose y is the resident w of n numbers."""
    g = mgpu.Graph()
    w, y = g.input("w", (n,), role="resident"), g.output("y", (n,))
    part = g.empty((n,))
    g.copy(part, w)
    g.copy(y, part)
    g.save(path, cpu="x86-64-v2")


def saveWeights(path, name, values):
    """A .pt2 file that has a weight of f32 and no model, at a multiple of 64 bytes."""
    meta = {"dtype": 7, "sizes": [{"as_int": len(values)}], "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}}
    entry = zipfile.ZipInfo("m/data/weights/weight_0")
    gap = -(30 + len(entry.filename) + 4) % 64
    entry.extra = struct.pack("<HH", 0x4246, gap) + bytes(gap)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(entry, values.tobytes())
        archive.writestr("m/models/model.json", "{}")
        archive.writestr("m/data/weights/model_weights_config.json",
                         json.dumps({"config": {name: {"path_name": "weight_0", "tensor_meta": meta}}}))


@contextlib.contextmanager
def databaseIn(folder):
    """A database of its own, without what earlier runs have tuned."""
    before = os.environ.get("MGPU_DB")
    os.environ["MGPU_DB"] = os.path.join(folder, "tuned.db")
    try:
        yield
    finally:
        if before is None:
            del os.environ["MGPU_DB"]
        else:
            os.environ["MGPU_DB"] = before


def line():
    return sys._getframe(1).f_lineno


def scaled(devices=2, **options):
    """Each device scales its part of w and x, and all are summed."""
    g = mgpu.Graph(devices=devices, name="scaled")
    x, w, y = g.input("x", (8 * devices,)), g.input("w", (8,), role="resident"), g.output("y", (8,))
    scale = g.kernel("scale", params=("w", "r", "f32"), host=SCALE, block=4, tunables={"ITEMS": [2, 1, 4]})
    parts = []
    for d in range(devices):
        a, b = g.empty((8,), device=d), g.empty((8,), device=d)
        g.copy(a, x[8 * d:8 * d + 8])
        scale(b, a, 2.0, grid=2, name=f"part{d}", flops=8)
        weights = g.empty((8,), device=d, name=f"w{d}")
        g.copy(weights, w)
        parts += [b] if d else [b, weights]
    g.all_reduce([parts[0], *parts[2:]])
    g.copy(y, parts[0])
    return g


class Arrays(unittest.TestCase):
    def setUp(self):
        self.program = scaled().open("host:2")
        self.program.write("w", [0.0] * 8)

    def expect(self, value, expected):
        self.assertEqual(self.program(x=value)["y"].tolist(), expected)

    def testBufferProtocol(self):
        expected = [2.0 * (k + k + 8) for k in range(8)]
        self.expect(list(range(16)), expected)
        self.expect(range(16), expected)
        self.expect(array.array("f", range(16)), expected)
        self.expect(memoryview(array.array("f", range(16))), expected)
        self.expect(array.array("f", range(16)).tobytes(), expected)  # raw
        self.expect((ctypes.c_float * 16)(*range(16)), expected)

    def testWrongArrays(self):
        for value, words in [([1.0] * 15, r"'x' has shape \(16,\), and its array \(15,\)"), (array.array("d", [0] * 16), "elements of type f32"),
                             (b"123", "'x' has 64 bytes, and 3"), (object(), "buffer protocol or DLPack"), (["a"] * 16, "no numbers of type f32"),
                             (memoryview(array.array("f", range(32)))[::2], "gaps")]:
            with self.assertRaisesRegex(mgpu.UsageError, words):
                self.program(x=value)
        with self.assertRaisesRegex(mgpu.UsageError, "no argument 'z'; there are x, w, y"):
            self.program(z=1)

    def testResultsAreCopiesAndArraysAreNot(self):
        first = self.program(x=[1] * 16)["y"]
        live = self.program.array("y")
        second = self.program(x=[2] * 16)["y"]
        self.assertEqual((first[0], second[0], live[0]), (4.0, 8.0, 8.0))
        self.assertEqual(first.data.format, "f")
        self.assertEqual(len(live), 8)
        self.program.array("x").data[0] = 5  # in place
        self.program.replay()
        self.assertEqual(live[0], 14.0)
        interface = live.__array_interface__
        self.assertEqual((interface["shape"], interface["typestr"]), ((8,), "<f4"))

    def testDLPack(self):
        """As another library gives it: memory, a shape, a deleter that must be called once."""
        numbers, shape, deleted = (ctypes.c_float * 16)(*range(16)), (ctypes.c_int64 * 1)(16), []

        class Tensor:
            device = 1

            def __dlpack__(self):
                self.deleter = _arrays._DELETER(lambda _: deleted.append(1))
                self.managed = _arrays._DLManagedTensor(
                    _arrays._DLTensor(ctypes.addressof(numbers), self.device, 0, 1, 2, 32, 1, shape, None, 0), None, self.deleter)
                make = ctypes.pythonapi.PyCapsule_New
                make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
                return make(ctypes.addressof(self.managed), b"dltensor", None)

        self.expect(Tensor(), [2.0 * (k + k + 8) for k in range(8)])
        self.assertEqual(deleted, [1])
        Tensor.device = 2
        with self.assertRaisesRegex(mgpu.UnsupportedError, "copy it to the host first"):
            self.program(x=Tensor())
        self.assertEqual(deleted, [1, 1])

    def testResultsAreGivenByDLPack(self):
        """A capsule that nobody takes frees what it has, and so does one that is taken."""
        result = self.program(x=list(range(16)))["y"]
        self.assertEqual(result.__dlpack_device__(), (1, 0))
        before = len(_arrays._given)
        capsule = result.__dlpack__()
        self.assertEqual(len(_arrays._given), before + 1)
        del capsule
        self.assertEqual(len(_arrays._given), before)

        class Only:
            def __dlpack__(self):
                return result.__dlpack__()
        self.assertEqual(_arrays.take("y", Only(), "f32", (8,)), result.tobytes())
        self.assertEqual(len(_arrays._given), before)

    def testBoundArraysAreTheArguments(self):
        x, y = array.array("f", range(16)), array.array("f", [0] * 8)
        self.program.bind("x", x)
        self.program.bind("y", y)
        self.program.replay()
        self.assertEqual(y.tolist(), [2.0 * (k + k + 8) for k in range(8)])
        x[0] = 100
        self.program.replay()
        self.assertEqual(y[0], 216.0)
        for wrong in (bytes(64), array.array("f", [0] * 15), array.array("d", [0] * 8)):
            with self.assertRaisesRegex(mgpu.UsageError, "'x' is bound to a writable array without gaps of 64 bytes of f32"):
                self.program.bind("x", wrong)

    def testAClosedProgramSaysSo(self):
        self.program.close()
        with self.assertRaisesRegex(mgpu.UsageError, "closed"):
            self.program.replay()


try:
    import numpy
except ImportError:
    numpy = None


@unittest.skipUnless(numpy, "numpy is not installed")
class Numpy(unittest.TestCase):
    def testArraysInAndOut(self):
        g = mgpu.Graph(devices=2)
        x, y = g.input("x", (4, 4), numpy.float32), g.output("y", (2, 4))
        halves = [g.empty((2, 4), device=d) for d in range(2)]
        for d in range(2):
            g.copy(halves[d], x[2 * d:2 * d + 2])
        g.all_reduce(halves)
        g.copy(y, halves[0])
        program = g.open("host:2")
        a = numpy.arange(16, dtype=numpy.float32).reshape(4, 4)
        expected = a[:2] + a[2:]

        class OnlyDLPack:
            def __dlpack__(self):
                return a.__dlpack__()
        for value in (a, OnlyDLPack()):
            result = program(x=value)["y"]
            got = numpy.asarray(result)
            numpy.testing.assert_array_equal(numpy.from_dlpack(result), got)
            self.assertEqual(got.dtype, numpy.float32)
            numpy.testing.assert_array_equal(got, expected)
        for wrong in (a.astype(numpy.float64), a.T, a[:, ::2], a.reshape(2, 8)):
            with self.assertRaises(mgpu.UsageError):
                program(x=wrong)
        a.flags.writeable = False
        numpy.testing.assert_array_equal(program(x=a)["y"], expected)
        numpy.asarray(program.array("x"))[:] = 7  # in place
        bound = numpy.zeros((2, 4), numpy.float32)
        program.bind("y", bound)
        program.replay()
        self.assertTrue((bound == 14).all())


class Numbers(unittest.TestCase):
    def testBits(self):
        for kind, value, expected in [("bf16", 1.0, "803f"), ("bf16", 1.00390625, "803f"), ("bf16", 1.01171875, "823f"), ("f16", 1.5, "003e"),
                                      ("i8", -1, "ff"), ("i1", True, "01"), ("f32", 1, "0000803f")]:
            self.assertEqual(_arrays.number_bytes(kind, value).hex(), expected, (kind, value))
        with self.assertRaises(mgpu.UsageError):
            _arrays.number_bytes("i8", 128)

    def testTypeNames(self):
        class float32:
            pass
        self.assertEqual([_arrays.type_name(each) for each in ("f32", "bfloat16", "torch.float16", float32, float, "index")],
                         ["f32", "bf16", "f16", "f32", "f32", "index"])
        with self.assertRaisesRegex(mgpu.UsageError, "complex64"):
            _arrays.type_name("complex64")


class Messages(unittest.TestCase):
    def testTheCallersLineIsNamed(self):
        g = mgpu.Graph(devices=2)
        x, a, b = g.input("x", (4,)), g.empty((4,), device=0), g.empty((3,), device=1)
        with self.assertRaises(mgpu.InvalidError) as caught:
            g.copy(b, a)
        self.assertEqual(str(caught.exception), f"test_mgpu.py:{line() - 1}: copies 4 elements into 3")
        g.copy(a, x)  # it goes on
        with self.assertRaisesRegex(mgpu.UsageError, "no buffer of this graph"):
            g.copy(a, mgpu.Graph().empty((4,)))
        with self.assertRaisesRegex(mgpu.UsageError, "outside of 'x'"):
            x[4]
        with self.assertRaisesRegex(mgpu.UsageError, "cannot be seen as"):
            x[::2].reshape(1, 2)
        g.check()

    def testALoopWithAnExceptionInsideIsForgotten(self):
        g = scaled()
        a, before = g.empty((4,)), g.plan().text
        with self.assertRaises(ZeroDivisionError):
            with g.loop(3):
                g.fill(a, 1)
                g.fill(a, 1 / 0)
        self.assertEqual(g.plan().text, before)

    def testKernels(self):
        g = mgpu.Graph()
        a = g.empty((4,))
        bad = g.kernel("bad", params=("rw",), host="void bad(mgpu_block, float *y) { y[0] = none; }")
        with self.assertRaisesRegex(mgpu.UsageError, "takes 1 arguments, and 2"):
            bad(a, 1)
        bad(a)
        with self.assertRaisesRegex(mgpu.InvalidError, r"kernel 'bad': \S+ refuses its C\+\+ for the host: bad.cpp:1:\d+: error: .*none"):
            g.open()
        gpu = mgpu.Graph()
        gpu.kernel("k", params=("rw",), cuda='extern "C" __global__ void k(float *) {}')(gpu.empty((4,)))
        built = mgpu.Graph()
        built.kernel("k", params=("rw",), cubins={"sm_90": b"\x7fELF"})(built.empty((4,)))
        with self.assertRaisesRegex(mgpu.UnsupportedError, r"test_mgpu.py:\d+: kernel 'k' has no C\+\+ for the host, CUDA C\+\+ or PTX: give one"):
            built.open()
        with self.assertRaisesRegex(mgpu.UsageError, "would run nowhere"):
            gpu.save("/nowhere/x.mgpu")
        gpu.check()
        self.assertIn("k_0", gpu.plan().explain())

    def testProbeFindsWhatIsNotDeclared(self):
        def graph(body, params=("w", "r"), reads=()):
            g = mgpu.Graph()
            a, b = g.empty((8,), name="a"), g.empty((8,), name="b")
            k = g.kernel("k", params=params, host=f"void k(mgpu_block, float *y, float *x) {{ {body} }}")
            k(a[2:6], b[2:6], reads=[each(a, b) for each in reads])
            return g
        graph("for (int i = 0; i < 4; ++i) y[i] = 2 * x[i];").check(probe=True)
        graph("y[0] = 1;").check(probe=True)  # not all of it
        for body, words in [("y[4] = 1;", "writes bytes 24 to 28 of buffer 'a', which has 32; its launch does not say so"),
                            ("y[-3] = 1;", "writes bytes -4 to 0 of buffer 'a'"), ("x[0] = 1;", "writes bytes 8 to 12 of buffer 'b'"),
                            ("y[0] = x[4];", "reads of buffer 'b' what its launch does not say: byte 8 of buffer 'a'"),
                            ("y[0] += x[0];", "reads of buffer 'a' what")]:
            with self.assertRaisesRegex(mgpu.InvalidError, r"test_mgpu.py:\d+: kernel 'k' " + words):
                graph(body).check(probe=True)
        graph("y[0] += x[0];", ("rw", "r")).check(probe=True)
        graph("y[0] = x[4];", reads=[lambda a, b: b[6:]]).check(probe=True)

    def testTheCompilerRunsOnce(self):
        with tempfile.TemporaryDirectory() as folder:
            log, script = os.path.join(folder, "log"), os.path.join(folder, "cxx")
            with open(script, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\necho run >> {log}\nexec c++ "$@"\n')
            os.chmod(script, 0o755)
            before = {name: os.environ.get(name) for name in ("CXX", "MGPU_KERNEL_CACHE")}
            os.environ.update(CXX=script + " -g0", MGPU_KERNEL_CACHE=os.path.join(folder, "kernels"))
            try:
                for _ in range(2):
                    scaled().open()
            finally:
                for name, value in before.items():
                    os.environ.update({name: value}) if value else os.environ.pop(name)
            with open(log, encoding="utf-8") as file:
                self.assertEqual(file.read(), "run\n")

    def testTheCompilerMayBeAbsent(self):
        before = os.environ.get("CXX")
        os.environ["CXX"] = "/nowhere/c++ -O9"
        try:
            with self.assertRaisesRegex(mgpu.AbsentError, "CXX names '/nowhere/c\\+\\+', which is no program"):
                scaled().open()
        finally:
            del os.environ["CXX"]
            if before:
                os.environ["CXX"] = before

    def testTargets(self):
        g = scaled()
        for target, kind in [("abacus", mgpu.UsageError), ("host:1", mgpu.AbsentError), ("cuda:0,1", mgpu.UnsupportedError),
                             ("sim:dgx-h200", mgpu.UnsupportedError)]:
            with self.assertRaisesRegex(kind, target):
                g.open(target)


class Plans(unittest.TestCase):
    def testPlansSayWhereTheyCameFrom(self):
        g = scaled()
        plan = g.plan(scheduler="shuffled", seed=3, streams=2)
        self.assertNotEqual(plan.text, g.plan().text)
        self.assertIn("part1", plan.explain())
        program = plan.open("host:2")
        self.assertEqual(program.plan_text(), plan.text)
        self.assertIn("part0", program.explain())
        program(x=[1] * 16, w=[0] * 8)
        times = program.times()
        self.assertEqual(sum(time.name.startswith("part") for time in times), 2)
        self.assertTrue(all(0 <= time.start_us <= time.end_us for time in times))
        self.assertTrue(all(time.location.startswith("test_mgpu.py:") for time in times))
        with self.assertRaisesRegex(mgpu.Error, "alphabetical"):
            g.plan(scheduler="alphabetical")

    def testFiguresSayWhatUploadsCost(self):
        def planned(role, **options):
            g = mgpu.Graph(devices=1)
            x, w = g.input("x", (64,)), g.input("w", (4096,), role=role)
            y = g.output("y", (64,))
            parts = [g.empty(b.shape, device=0) for b in (x, w)]
            g.copy(parts[0], x)
            g.copy(parts[1], w)
            g.kernel("use", params=("rw", "r"), block=1, host="extern \"C\" void use(mgpu_block, float *x, const float *w) { x[0] += w[0]; }")(*parts)
            g.copy(y, parts[0])
            return g, g.plan(**options)
        _, before = planned(None)
        g, after = planned("resident")
        was, now = before.figures(), after.figures()
        self.assertEqual((was.upload_arguments, was.upload_bytes, was.resident_arguments), (2, 4 * 64 + 4 * 4096, 0))
        self.assertEqual((now.upload_arguments, now.upload_bytes), (1, 4 * 64))
        self.assertEqual((now.resident_arguments, now.resident_bytes), (1, 4 * 4096))
        self.assertGreater(was.upload_us, now.upload_us)
        self.assertLess(now.replay_us, was.replay_us)
        self.assertEqual((was.load_us, was.fetch_us), (0, 0))
        self.assertAlmostEqual(now.load_us, was.upload_us - now.upload_us, 6)
        self.assertLessEqual(now.bound_us, now.replay_us)
        self.assertEqual(after.open("host:1").figures(), now)
        # Another target has other times, and a limit of memory is kept.
        there = planned("resident", machine="sim:dgx-h200", budget="5")[1].figures()
        self.assertNotEqual(there.replay_us, now.replay_us)
        self.assertEqual(there.resident_bytes, now.resident_bytes)
        self.assertEqual(planned("resident", memory="64KB")[1].figures(), now)
        with self.assertRaisesRegex(mgpu.Error, "fits 1000 bytes"):
            g.plan(memory="1KB")

    def testAMachineThatIsNotHereIsPlannedFor(self):
        g = scaled()
        plan = g.plan(machine="sim:dgx-h200", budget="5")
        self.assertIn('model "dgx-h200', plan.text)
        self.assertEqual(plan.text, g.plan(machine="sim:dgx-h200", budget="5").text)
        self.assertRegex(plan.explain(), r"makespan \d")
        with self.assertRaisesRegex(mgpu.UnsupportedError, "'sim:dgx-h200' can be planned for, not run on"):
            plan.open()
        with self.assertRaisesRegex(mgpu.Error, "sim:nowhere|nowhere"):
            g.plan(machine="sim:nowhere")

    def testDeclaredTimesAreThePlans(self):
        g = mgpu.Graph()
        k = g.kernel("k", params=("rw",), host="void k(mgpu_block, float *) {}")
        a = g.empty((4,))
        k(a, microseconds=1234)
        self.assertIn("1234", g.plan().explain())


class Bundles(unittest.TestCase):
    def testABundleReplaysWhatWasBuilt(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = os.path.join(folder, "a.mgpu"), os.path.join(folder, "b.mgpu")
            scaled().save(first)
            scaled().save(second)
            with open(first, "rb") as a, open(second, "rb") as b:
                self.assertEqual(a.read(), b.read(), "equal programs give equal bytes")
            with mgpu.load(first, "host:2") as program:
                self.assertEqual(program(x=range(16), w=[0] * 8)["y"].tolist(), [2.0 * (k + k + 8) for k in range(8)])
            with self.assertRaises(mgpu.UsageError):
                scaled().save(os.path.join(folder, "c.mgpu"), cpu="x99")
            self.assertFalse(os.path.exists(os.path.join(folder, "c.mgpu")))
            with self.assertRaisesRegex(mgpu.UsageError, "cannot be opened"):
                mgpu.load(os.path.join(folder, "d.mgpu"))

    def testWhoReplaysIsChosen(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mgpu")
            scaled().save(path, cpu="x86-64-v2")
            allowed = os.sched_getaffinity(0)
            try:
                for how in ({"threads": 1}, {"cpu": "x86-64-v2"}, {"threads": 1, "pin": True}):
                    for opened in (lambda: mgpu.load(path, "host:2", **how), lambda: scaled().open("host:2", **how)):
                        os.sched_setaffinity(0, allowed)
                        with opened() as program:
                            self.assertEqual(program(x=range(16), w=[0] * 8)["y"].tolist(), [2.0 * (k + k + 8) for k in range(8)])
                            self.assertIn(how.get("cpu", ""), program.facts().code)
                            if "threads" in how:
                                self.assertIn("1 thread", program.facts().device)
                        self.assertEqual(len(os.sched_getaffinity(0)), 1 if "pin" in how else len(allowed))
            finally:
                os.sched_setaffinity(0, allowed)
            for how, words in (({"threads": 0}, "threads 0: at least"), ({"threads": 1000}, "this process may use [0-9]+ CPU"),
                               ({"cpu": "x86-64-v9"}, "it runs x86-64")):
                with self.assertRaisesRegex(mgpu.UsageError, words):
                    mgpu.load(path, "host:2", **how)
                with self.assertRaisesRegex(mgpu.UsageError, words):
                    scaled().open("host:2", **how)
            with self.assertRaisesRegex(mgpu.UsageError, "of the host"):
                mgpu.load(path, "cuda:0/2", threads=1)
            with self.assertRaisesRegex(mgpu.UsageError, "of the host"):
                scaled().open("cuda:0/2", pin=True)

    def testAnOperatorIsTold(self):
        with tempfile.TemporaryDirectory() as folder:
            path, lines = os.path.join(folder, "a.mgpu"), []
            scaled().save(path, cpu="x86-64-v2")
            with mgpu.load(path, "host:2", deadline=60, memory="1MB", roles={"x": "input"},
                           log=lambda level, line: lines.append((level, line))) as program:
                program(x=range(16), w=[0] * 8)
                program.replay(times=2)
                facts, counters = program.facts(), program.counters()
                with self.assertRaises(mgpu.UsageError):
                    program.write("none", 1)
                text = mgpu.metrics(os.path.join(folder, "m.prom"))
            self.assertEqual((facts.target, len(facts.hash), facts.version), ("host:2", 64, mgpu.__version__))
            self.assertEqual((counters.replays, counters.failures), (3, 0))
            self.assertLessEqual(counters.p50_us, counters.most_us)
            with open(os.path.join(folder, "m.prom"), encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
            self.assertIn("mgpu_replays_total", text)
            self.assertEqual([level for level, _ in lines], [0, 0, 0])
            for how, kind in (({"memory": "9"}, mgpu.AbsentError), ({"roles": {"x": "resident"}}, mgpu.UnsupportedError)):
                with self.assertRaises(kind):
                    mgpu.load(path, "host:2", **how)

    def testABundleOfMemoryTakesAnothersPlace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mgpu")
            scaled().save(path, cpu="x86-64-v2")
            with open(path, "rb") as file:
                contents = file.read()
            with mgpu.load(contents, "host:2") as program, mgpu.load(bytearray(contents), "host:2", threads=1) as other:
                x = array.array("f", range(16))
                before = program(x=x, w=[0] * 8)["y"].tolist()
                other(x=[1] * 16, w=[0] * 8)
                program.swap(other)
                self.assertEqual(program.read("y").tolist(), before)  # of the replay before
                self.assertIn("on 1 thread", program.facts().device)
                self.assertEqual(program(x=x)["y"].tolist(), before)
                program.replay_begin()
                program.wait()
                self.assertEqual(program.read("y").tolist(), before)
                self.assertEqual(program.arguments["x"].name, b"x")
                other.replay_begin()
                with self.assertRaisesRegex(mgpu.UsageError, "wait for its replay"):
                    program.swap(other)
                other.close()
                self.assertEqual(program(x=x)["y"].tolist(), before)
                with self.assertRaises(mgpu.UsageError):
                    program.swap(program)
            with self.assertRaisesRegex(mgpu.InvalidError, "in memory"):
                mgpu.load(contents[:-1000])

    def testWeightsLieBesideABundle(self):
        with tempfile.TemporaryDirectory() as folder:
            path, n = os.path.join(folder, "a.mgpu"), 1 << 16
            saveCopyOfWeights(path, n)
            with open(os.path.join(folder, "w.bin"), "wb") as file:
                file.write(array.array("f", [2.5] * n).tobytes())
            with open(os.path.join(folder, "w.bin"), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as weights:
                with mgpu.load(path, constants={"w": weights}) as program:
                    self.assertEqual(program()["y"].tolist(), [2.5] * n)
                    program.load()
                    self.assertEqual(program()["y"][n - 1], 2.5)
                with mgpu.load(path, constants={"w": weights}) as program:
                    program.write("w", [3.0] * n)
                    self.assertEqual(program()["y"][0], 3.0)
                with self.assertRaisesRegex(mgpu.UsageError, "'w' has"):
                    mgpu.load(path, constants={"w": memoryview(weights)[4:]})

    def testASwapWithAFileThatWasWritten(self):
        with tempfile.TemporaryDirectory() as folder:
            path, n = os.path.join(folder, "a.mgpu"), 1 << 16
            saveCopyOfWeights(path, n)
            programs = []
            for value in (1.0, 2.0):
                weights = os.path.join(folder, f"{value}.pt2")
                saveWeights(weights, "w", array.array("f", [value] * n))
                programs.append(mgpu.load(path, weights=weights))
                self.assertEqual(programs[-1]()["y"][n - 1], value)
            program, other = programs
            os.utime(weights)
            with self.assertRaisesRegex(mgpu.UsageError, "of the other program .* was written"):
                program.swap(other)
            self.assertEqual(program()["y"][n - 1], 1.0)  # goes on
            with self.assertRaisesRegex(mgpu.InvalidError, "was written"):
                other.replay()

    def testAlternativesAreTheTunables(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mgpu")
            scaled().save(path, cpu="x86-64-v2", alternatives=5)
            with contextlib.closing(sqlite3.connect(path)) as bundle:
                ways = bundle.execute("SELECT target FROM kernel_images WHERE form = 'host-way'").fetchall()
            self.assertEqual(len(ways), 2, ways)  # ITEMS is 2, 1 or 4
            self.assertTrue(any("tunables=1" in target for target, in ways), ways)
            with mgpu.load(path) as program:
                self.assertEqual(program(x=[1] * 16, w=[0] * 8)["y"][0], 4.0)

    def testACubinOfNvrtcGoesInAsItIs(self):
        source = 'extern "C" __global__ void twice(float *y, long long n) { if (threadIdx.x < n) y[threadIdx.x] *= 2; }'

        def graph(params, values, **form):
            g = mgpu.Graph()
            g.kernel("twice", params=params, block=8, **form)(g.empty((8,)), *values)
            return g
        with tempfile.TemporaryDirectory() as folder:
            path, again = os.path.join(folder, "a.mgpu"), os.path.join(folder, "b.mgpu")
            try:
                graph(("rw", "i64"), [8], cuda=source).save(path, arch="sm_90")
            except mgpu.AbsentError as error:
                if os.environ.get("MGPU_REQUIRE_NVRTC"):
                    raise
                self.skipTest(str(error))
            cubin = ("SELECT value FROM blobs JOIN kernel_images ON key = blob WHERE form = 'cubin'",)
            with contextlib.closing(sqlite3.connect(path)) as bundle:
                made, = bundle.execute(*cubin).fetchone()
            graph(("rw", "i64"), [8], cubins={"sm_90": made}).save(again, arch="sm_90")
            with contextlib.closing(sqlite3.connect(again)) as bundle:
                self.assertEqual(bundle.execute(*cubin).fetchone(), (made,))
            with self.assertRaisesRegex(mgpu.InvalidError, r"takes 2 parameters of \[8, 8\] bytes, but the launch gives 2 of \[8, 4\]"):
                graph(("rw", "f32"), [8], cubins={"sm_90": made}).save(again, arch="sm_90")

    def testACubinForAnotherGpuIsNot(self):
        g = mgpu.Graph()
        ptx = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n\0"
        k = g.kernel("k", params=("rw",), cubins={"sm_90": ptx})
        k(g.empty((4,)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.mgpu")
            with self.assertRaisesRegex(mgpu.AbsentError, "came compiled for sm_90 and without CUDA C.*give a cubin for sm_80 too"):
                g.save(path, arch="sm_80")


class Residents(unittest.TestCase):
    def testWhatIsResidentStays(self):
        g = mgpu.Graph()
        total, x, y = g.resident((4,)), g.input("x", (4,)), g.output("y", (4,))
        a = g.empty((4,))
        add = g.kernel("add", params=("rw", "r"), block=4,
                       host="void add(mgpu_block, float *y, const float *x) { for (int i = 0; i < 4; ++i) y[i] += x[i]; }")
        g.copy(a, x)
        add(total, a)
        g.copy(y, total)
        program = g.open()
        self.assertEqual([program(x=[k] * 4)["y"][0] for k in (1, 2, 3)], [1.0, 3.0, 6.0])

    def testADynamicNumberIsRead(self):
        g = mgpu.Graph()
        rate, y, a = g.input("rate", (), "f64", role="dynamic"), g.output("y", (2,), "f64"), g.empty((2,), "f64")
        put = g.kernel("put", params=("w", "r"), host="void put(mgpu_block, double *y, const double *rate) { y[0] = y[1] = *rate; }")
        put(a, rate)
        g.copy(y, a)
        program = g.open()
        self.assertEqual([program(rate=r)["y"].tolist() for r in (0.5, 3)], [[0.5, 0.5], [3.0, 3.0]])

    def testConstantsAndFills(self):
        g = mgpu.Graph()
        c, y, a = g.constant([1.5, -2], (2,), "bf16"), g.output("y", (4,), "bf16"), g.empty((4,), "bf16")
        g.fill(a, 1.0)
        g.copy(a[1:3], c)
        g.copy(y, a)
        self.assertEqual(g.open()()["y"].tolist(), [0x3f80, 0x3fc0, 0xc000, 0x3f80])


class Parts(unittest.TestCase):
    def testNodesKnowWhatTheyComputeOfAPipeline(self):
        g = mgpu.Graph()
        x, a = g.input("x", (4,)), g.empty((4,))
        with g.part("backward", 3, stage=1):
            g.copy(a, x)
        g.fill(a, 1)
        with self.assertRaisesRegex(mgpu.UsageError, "there is no part 'sideways' of a pipeline; there are forward, backward, weights"):
            with g.part("sideways", 0):
                pass
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "parts.mgpu")
            g.save(path, cpu="none")
            with contextlib.closing(sqlite3.connect(path)) as bundle:
                text = bundle.execute("SELECT text FROM programs").fetchone()[0]
        self.assertEqual([line.split(" in ")[-1] for line in text.splitlines() if " in " in line], ["backward 3 1"])


class Costs(unittest.TestCase):
    def testATableIsNotReadWhole(self):
        def makespan(**options):
            g = mgpu.Graph()
            table, row = g.empty((1024, 1024)), g.empty((1024,))
            g.kernel("look", params=("w", "r"), host="void look(mgpu_block, float *y, const float *table) {}")(row, table, **options)
            return float(next(line for line in g.plan().text.splitlines() if line.startswith("replay ")).split()[1])
        whole, part = makespan(), makespan(most_bytes={1: 4096})
        self.assertLess(part, whole / 10)
        with self.assertRaisesRegex(mgpu.UsageError, "most_bytes {2: 1}: give bytes by the places of its arguments"):
            makespan(most_bytes={2: 1})


class CommandLine(unittest.TestCase):
    def testVersion(self):
        done = subprocess.run([sys.executable, "-m", "mgpu", "--version"], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"\Alibmgt \d+\.\d+\.\d+ \(commit \w+\)")
        self.assertIn("Library: ", done.stdout)


class External(unittest.TestCase):
    """Memory of the caller's on a device: kernels and collectives work on it where it is."""

    def graph(self, name="add", devices=1):
        g = mgpu.Graph(devices=devices, name=name)
        for d in range(devices):
            x, y = g.external(f"x{d}", (4,), device=d), g.external(f"y{d}", (4,), device=d)
            g.kernel("add", params=("rw", "r"), host=ADD)(y, x)
        return g

    def testArraysAreWorkedOnInPlace(self):
        x, y = array.array("f", [1, 2, 3, 4]), array.array("f", [10] * 4)
        with self.graph().open() as program:
            self.assertEqual(program.devices, {"x0": 0, "y0": 0})
            made = program(x0=x, y0=y)
            self.assertIs(made["y0"], y)
            self.assertEqual(y.tolist(), [11, 12, 13, 14])
            program.replay(2)  # the memory stays bound
            self.assertEqual(y.tolist(), [13, 16, 19, 22])
            other = array.array("f", [0] * 4)
            program(y0=other)  # in its place, from the same graph
            self.assertEqual((other.tolist(), y.tolist()), ([1, 2, 3, 4], [13, 16, 19, 22]))

    def testWhatIsNotBoundIsTheTargets(self):
        with self.graph().open() as program:
            with self.assertRaisesRegex(mgpu.UsageError, "argument 'x0' is read but has no value"):
                program.replay()
            self.assertEqual(program(x0=[1] * 4, y0=[5] * 4)["y0"].tolist(), [6] * 4)
            program.array("y0").data[0] = 0
            program.replay()
            self.assertEqual(program.read("y0").tolist(), [1, 7, 7, 7])
            x = array.array("f", [1] * 4)
            program.bind("x0", x)
            with self.assertRaisesRegex(mgpu.UsageError, "overlap those of 'x0': what the program writes is no other argument's"):
                program.bind("y0", x)
            program.replay()  # it was not lost by that
            self.assertEqual(program.read("y0").tolist(), [2, 8, 8, 8])

    def testCollectivesAndBundles(self):
        g = self.graph(devices=2)
        y = [g._inputs["y0"], g._inputs["y1"]]
        g.all_reduce(y)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.mgpu")
            g.save(path, cpu="x86-64-v2")
            for program in (g.open("host:2"), g.open("host:2", scheduler="shuffled", seed=5), mgpu.load(path, "host:2")):
                arrays = {name: array.array("f", [value] * 4) for name, value in (("x0", 1), ("y0", 10), ("x1", 2), ("y1", 20))}
                program(**arrays)
                self.assertEqual((arrays["y0"].tolist(), arrays["y1"].tolist()), ([33] * 4, [33] * 4))

    def testOneStateOfTwoPrograms(self):
        """A prefill writes the state, a decode goes on with it, and both read the weights."""
        prefill, decode = self.graph("prefill"), mgpu.Graph(name="decode")
        state, weights, out = decode.external("state", (4,)), decode.external("w", (4,)), decode.output("out", (4,))
        decode.kernel("add", params=("rw", "r"), host=ADD)(state, weights)
        decode.copy(out, state)
        first, second = prefill.open(), decode.open()
        second.share("state", first, "y0")
        second.share("w", first, "x0")
        first(x0=[1, 2, 3, 4], y0=[0] * 4)
        self.assertEqual(second()["out"].tolist(), [2, 4, 6, 8])
        self.assertEqual(second()["out"].tolist(), [3, 6, 9, 12])
        self.assertEqual(first.read("y0").tolist(), [3, 6, 9, 12])
        first.close()  # the memory stays
        self.assertEqual(second()["out"].tolist(), [4, 8, 12, 16])
        for wrong, name in (("out", "y0"), ("state", "state")):
            with self.assertRaises(mgpu.UsageError):
                second.share(wrong, prefill.open() if name == "y0" else second, name)

    def testWhereItCannotBe(self):
        g = mgpu.Graph()
        with self.assertRaisesRegex(mgpu.UsageError, "caller's memory of a device: name the device"):
            g.external("x", (4,), device=-1)
        g.external("x", (4,))
        with self.assertRaisesRegex(mgpu.UsageError, "name of another buffer"):
            g.empty((4,), name="x")


class Tuning(unittest.TestCase):
    WORK = """void work(mgpu_block, int64_t *y, const int64_t *x) {
      volatile int64_t waste = 0;
      for (int k = 0; k < WASTE; ++k) waste = waste + k;
      for (int i = 0; i < 64; ++i) y[i] = x[i] + 1;
    }"""

    def graph(self, **options):
        g = mgpu.Graph(name="tuned")
        x, y, a, b = g.input("x", (64,), "i64"), g.output("y", (64,), "i64"), g.empty((64,), "i64"), g.empty((64,), "i64")
        g.copy(a, x)
        g.kernel("work", params=("w", "r"), host=self.WORK, tunables={"WASTE": [1000000, 1, 1000001]}, **options)(b, a)
        g.copy(y, b)
        return g

    def testFindsAndUsesIt(self):
        with tempfile.TemporaryDirectory() as folder, databaseIn(folder):
            g, lines = self.graph(), []
            self.assertEqual(g.open().configuration(), "")
            found = g.tune(budget=6, progress=lines.append, x=range(64))
            self.assertFalse(found.is_default, found.text)
            self.assertLess(found.tuned_us, found.default_us)
            self.assertTrue(lines)
            for graph in (g, self.graph()):  # an equal one, too
                program = graph.open()
                self.assertIn("work:", program.configuration())
                self.assertIn("tunables=1", program.configuration())
                self.assertEqual(program(x=range(64))["y"].tolist(), list(range(1, 65)))
            self.assertTrue(g.tune(budget=6).is_known)
            self.assertEqual(g.open(tuned=False).configuration(), "")
            self.assertEqual(g.open(scheduler="serial").configuration(), "")

    def testStops(self):
        with tempfile.TemporaryDirectory() as folder, databaseIn(folder):
            def stop(_):
                raise KeyboardInterrupt
            with self.assertRaises(KeyboardInterrupt):
                self.graph().tune(budget=100000, progress=stop)

    def testRules(self):
        g = self.graph(rules=["WASTE <= 1000000", "2 * WASTE == WASTE + WASTE", "WASTE % 1 == 0"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.mgpu")
            g.save(path, cpu="x86-64-v2", alternatives=8)
            rows = sqlite3.connect(path).execute("SELECT count(*) FROM kernel_images WHERE form = 'host-way'").fetchall()
            self.assertEqual(rows, [(1,)])  # 1000001 breaks a rule
        for rule, words in (("WASTE < 3", "has no <=, == or %"), ("WASTE <= X", "'X', which is neither a number nor a tunable"),
                            ("WASTE % 2 == 1", "does not end with == 0"), ("", "''"), ("WASTE <= 5", "first values of the tunables break the rule")):
            with self.assertRaisesRegex(mgpu.UsageError, words):
                self.graph(rules=[rule])

    def testWrongCalls(self):
        with self.assertRaisesRegex(mgpu.UsageError, "no input 'z'; there are x"):
            self.graph().tune(z=1)
        with self.assertRaisesRegex(mgpu.UsageError, "60s"):
            self.graph().tune(budget="soon")


if __name__ == "__main__":
    unittest.main()
