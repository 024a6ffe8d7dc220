// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `run` refuses of a kernel, `check` refuses, each of them; and a loop of
// the host that would not end is refused by both.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/barrier | FileCheck %s --check-prefix=BARRIER
// RUN: not mgpu-tune check %t/two.mlir 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not mgpu-tune check %t/two.mlir --json 2>/dev/null | FileCheck %s --check-prefix=JSON
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/private | FileCheck %s --check-prefix=PRIVATE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/endless | FileCheck %s --check-prefix=ENDLESS
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/huge | FileCheck %s --check-prefix=HUGE

// HUGE: error: 'mgpu.launch' op the grid size is 1099511627776; give 1 to 4294967295
// HUGE: exit=1
// BARRIER: error: {{.*}}'gpu.barrier' op is under control flow that is not the same for all threads
// BARRIER: exit=1
// TWO-DAG: two.mlir:{{.*}}'gpu.barrier' op is under control flow
// TWO-DAG: two.mlir:{{.*}}printf
// JSON: "severity": "error",
// JSON: "severity": "error",
// PRIVATE: error: {{.*}}memory
// PRIVATE: exit=5
// ENDLESS: error: {{.*}}a loop of 4611686018427387904 trips would not end; give it at most 2^40
// ENDLESS: exit=5

//--- barrier
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    %first = arith.cmpi ult, %i, %c1 : index
    scf.if %first { gpu.barrier }
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- two.mlir
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant 1.0 : f32
  %d = mgpu.get_device %c0 : !mgpu.device
  %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  mgpu.launch %d grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    %first = arith.cmpi ult, %i, %c1 : index
    scf.if %first { gpu.barrier }
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.launch %d grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    gpu.printf "%s", %i : index
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- private
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    %p = memref.alloca() : memref<268435456xf32>
    memref.store %one, %p[%i] : memref<268435456xf32>
    %v = memref.load %p[%i] : memref<268435456xf32>
    memref.store %v, %a[%i] : memref<64xf32>
  }
  return
}
//--- endless
  %many = arith.constant 4611686018427387904 : index
  scf.for %it = %c0 to %many step %c1 {
    mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
      %i = gpu.thread_id x
      memref.store %one, %a[%i] : memref<64xf32>
    }
  }
  return
}
//--- huge
  %huge = arith.constant 1099511627776 : index
  mgpu.launch %d0 grid(%huge) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
