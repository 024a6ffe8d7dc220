// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalars decide the graph: without them there is none.
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %s | FileCheck %s --check-prefix=MISSING
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %s --arg n=soon | FileCheck %s --check-prefix=MALFORMED
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %s --arg n=5000000000 | FileCheck %s --check-prefix=WIDE
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %s --arg n=2 | FileCheck %s --check-prefix=GIVEN
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %s --entry unknown | FileCheck %s --check-prefix=UNKNOWN

// MISSING: argument 'n' of @main is a scalar without a value; give --arg n=NUMBER
// MISSING: exit=2
// MALFORMED: --arg n: 'soon' is not a number of type i32
// MALFORMED: exit=2
// WIDE: --arg n: '5000000000' is not a number of type i32
// WIDE: exit=2
// GIVEN: ok: 1 device, 2 nodes
// GIVEN: argument n: i32 (specialised)
// GIVEN: exit=0
// UNKNOWN: error: {{.*}}the grid size is not a constant after specialisation{{.*}}--arg
// UNKNOWN: exit=1

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    func.call @step(%n) : (i32) -> ()
  }
  return
}

func.func @step(%n: i32) {
  %c0 = arith.constant 0 : index
  %d = mgpu.get_device %c0 : !mgpu.device
  %blocks = arith.index_cast %n : i32 to index
  %one = arith.constant 1.0 : f32
  %c64 = arith.constant 64 : index
  %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  mgpu.launch %d grid(%blocks) block(%c64) {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}

func.func @unknown(%m: memref<4xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = mgpu.get_device %c0 : !mgpu.device
  %poison = ub.poison : index
  mgpu.launch %d grid(%poison) block(%c1) {
  }
  return
}
