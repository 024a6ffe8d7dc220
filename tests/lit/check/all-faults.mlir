// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `check` reports every race, each pair of lines once, and no number of
// warnings hides an error; a guard that is affine in the ids hides none either.
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %s --roll-from 0 | FileCheck %s
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %s | FileCheck %s --check-prefix=ROLLED

// CHECK: warning: possible race on buffer 'b'
// CHECK-NOT: possible race on buffer 'b'
// CHECK: error: race on buffer 'a'
// CHECK: note: the earlier use is here
// CHECK: error: race on buffer 'a2'
// CHECK-NOT: error: {{$}}
// CHECK: mgpu-tune: error: '-': 2 errors found; see above
// CHECK: exit=1
// ROLLED: mgpu-tune: error: '-': 2 errors found; see above
// ROLLED: exit=1
  scf.for %it = %c0 to %c64 step %c1 {
    mgpu.launch %d1 grid(%c1) block(%c64) stream %s1 {
      %i = gpu.thread_id x
      memref.store %one, %b[%i] : memref<64xf32>
    }
    mgpu.launch %d1 grid(%c1) block(%c64) {
      %i = gpu.thread_id x
      %other = arith.cmpi ne, %i, %c1 : index
      scf.if %other { memref.store %one, %b[%i] : memref<64xf32> }
    }
  }
  %n = arith.constant 50 : index
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    %in = arith.cmpi ult, %i, %n : index
    scf.if %in {
      memref.store %one, %a[%i] : memref<64xf32>
      memref.store %one, %a2[%i] : memref<64xf32>
    }
  }
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    %in = arith.cmpi ult, %i, %n : index
    scf.if %in { memref.store %one, %a[%i] : memref<64xf32> }
  }
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    %in = arith.cmpi ult, %i, %n : index
    scf.if %in { memref.store %one, %a2[%i] : memref<64xf32> }
  }
  return
}
