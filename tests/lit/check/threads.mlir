// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two threads of one launch that touch one element, and reads of memory that nothing has written.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/reversed | FileCheck %s --check-prefix=REVERSED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/guarded | FileCheck %s --check-prefix=GUARDED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/unwritten | FileCheck %s --check-prefix=UNWRITTEN

// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/exclusive | FileCheck %s --check-prefix=EXCLUSIVE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/permuted | FileCheck %s --check-prefix=GUARDED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/looked-up | FileCheck %s --check-prefix=LOOKED-UP
// EXCLUSIVE: warning: possible race within a launch on buffer 'a': thread 0 of block 0 writes element 0, which thread 1 of block 0 reads, in no order
// EXCLUSIVE: exit=0
// LOOKED-UP: warning: possible race within a launch on buffer 'a': two threads may come to one element, which one of them writes
// LOOKED-UP: exit=0

// REVERSED: error: race within a launch on buffer 'a': thread {{[0-9]+}} of block {{[0-9]+}} {{reads|writes}} element {{[0-9]+}}, which thread {{[0-9]+}} of block {{[0-9]+}} {{reads|writes}}, in no order; give each thread elements of its own, or use memref.atomic_rmw
// REVERSED: note: the other access is here
// REVERSED: exit=1
// GUARDED-NOT: {{race|error}}
// GUARDED: exit=0
// UNWRITTEN: warning: reads buffer 'b', which nothing has written before: what it holds is undefined; copy or fill it first
// UNWRITTEN-NOT: warning
// UNWRITTEN: exit=0

//--- reversed
  %c63 = arith.constant 63 : index
  mgpu.memcpy %a, %x, %d0, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d0 grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    %k = arith.subi %c63, %i : index
    %v = memref.load %a[%k] : memref<64xf32>
    memref.store %v, %a[%i] : memref<64xf32>
  }
  return
}
//--- guarded
  %c32 = arith.constant 32 : index
  mgpu.memcpy %a, %x, %d0, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d0 grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    %in = arith.cmpi slt, %i, %c32 : index
    scf.if %in {
      %k = arith.addi %i, %c32 : index
      %v = memref.load %a[%k] : memref<64xf32>
      memref.store %v, %a[%i] : memref<64xf32>
    }
  }
  return
}
//--- unwritten
  mgpu.launch %d1 grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    %v = memref.load %b[%i] : memref<64xf32>
    memref.store %v, %b2[%i] : memref<64xf32>
  }
  mgpu.memcpy %x, %b2, %host, %d1 : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  return
}
//--- exclusive
  mgpu.memcpy %a, %x, %d0, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d0 grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    %k = arith.xori %i, %c1 : index
    %v = memref.load %a[%k] : memref<64xf32>
    memref.store %v, %a[%i] : memref<64xf32>
  }
  return
}
//--- permuted
  mgpu.memcpy %a, %x, %d0, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d0 grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    %k = arith.xori %i, %c1 : index
    %v = memref.load %a[%k] : memref<64xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %a[%k] : memref<64xf32>
  }
  return
}
//--- looked-up
  mgpu.memcpy %a, %x, %d0, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d0 grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    %f = memref.load %a[%i] : memref<64xf32>
    %n = arith.fptoui %f : f32 to i32
    %k = arith.index_cast %n : i32 to index
    memref.store %f, %a[%k] : memref<64xf32>
  }
  return
}
