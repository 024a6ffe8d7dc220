// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views and sizes of host code that do not exist, copies and collectives
// without one meaning, and host code without an end.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/cast | FileCheck %s --check-prefix=CAST
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/wraps | FileCheck %s --check-prefix=WRAPS
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/empty | FileCheck %s --check-prefix=EMPTY
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/reinterpret | FileCheck %s --check-prefix=REINTERPRET
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/overlap | FileCheck %s --check-prefix=OVERLAP
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/oneplace | FileCheck %s --check-prefix=ONEPLACE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/divide | FileCheck %s --check-prefix=DIVIDE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/reduced | FileCheck %s --check-prefix=REDUCED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/gathered | FileCheck %s --check-prefix=GATHERED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/inplace | FileCheck %s --check-prefix=INPLACE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/endless | FileCheck %s --check-prefix=ENDLESS
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/reverse | FileCheck %s --check-prefix=REVERSE

// CAST: error: 'memref.cast' op dimension 0 is cast to 128, but it is 64 long
// CAST: exit=1
// WRAPS: error: 'memref.subview' op dimension 0, 4611686018427387905 elements from 1 by steps of 4, leaves the 64 of its source
// WRAPS: exit=1
// EMPTY: ok:
// EMPTY: exit=0
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/inside | FileCheck %s --check-prefix=INSIDE
// INSIDE: error: 'memref.reinterpret_cast' op counts from the start of a buffer of which the kernel has only a view at an offset; capture the buffer itself
// INSIDE: exit=1
// REINTERPRET: error: 'memref.reinterpret_cast' op reaches outside buffer 'a'
// REINTERPRET: exit=1
// OVERLAP: error: 'mgpu.memcpy' op copies between two parts of buffer 'a' that overlap; copy through another buffer
// OVERLAP: exit=1
// ONEPLACE: error: 'mgpu.memcpy' op writes 64 elements to one place of buffer 'a'
// ONEPLACE: exit=1
// DIVIDE: error: 'arith.divsi' op divides by zero
// DIVIDE: exit=1
// REDUCED: error: 'mgpu.all_reduce' op sends a part of buffer 'a' that overlaps the part it receives into; send just what is received, or another buffer
// REDUCED: exit=1
// GATHERED: error: 'mgpu.all_gather' op sends a part of buffer 'b' that overlaps the part it receives into; send the rank's own slice of the result, or another buffer
// GATHERED: exit=1
// INPLACE: exit=0
// ENDLESS: error: the while loop at {{.*}} goes on after 1000000 trips, whose operations are more than the 4000000 that a program may have; if it ends, raise --node-limit
// ENDLESS: exit=5
// REVERSE-NOT: {{race|warning|error}}
// REVERSE: exit=0

//--- cast
  %any = memref.cast %a : memref<64xf32> to memref<?xf32>
  %big = memref.cast %any : memref<?xf32> to memref<128xf32>
  return
}
//--- wraps
  %c4 = arith.constant 4 : index
  %n = arith.constant 4611686018427387905 : index
  %v = memref.subview %a[1] [%n] [%c4] : memref<64xf32> to memref<?xf32, strided<[?], offset: 1>>
  return
}
//--- empty
  %m = arith.constant 9223372036854775807 : index
  %v = memref.subview %a[%m] [0] [1] : memref<64xf32> to memref<0xf32, strided<[1], offset: ?>>
  return
}
//--- reinterpret
  %m = arith.constant 4611686018427387904 : index
  %v = memref.reinterpret_cast %a to offset: [%m], sizes: [%m], strides: [%m] : memref<64xf32> to memref<?xf32, strided<[?], offset: ?>>
  return
}
//--- overlap
  %lo = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  %hi = memref.subview %a[16] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 16>>
  mgpu.memcpy %hi, %lo, %d0, %d0 : memref<32xf32, strided<[1], offset: 16>>, memref<32xf32, strided<[1]>>, !mgpu.device, !mgpu.device
  return
}
//--- reduced
  %lo = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  %hi = memref.subview %a[16] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 16>>
  mgpu.all_reduce %lo, %hi, %comm, sum : memref<32xf32, strided<[1]>>, memref<32xf32, strided<[1], offset: 16>>, !mgpu.communicator
  %other = memref.subview %b[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  mgpu.all_reduce %other, %other, %comm, sum : memref<32xf32, strided<[1]>>, memref<32xf32, strided<[1]>>, !mgpu.communicator
  return
}
//--- gathered
  %own = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  mgpu.all_gather %own, %a, %comm : memref<32xf32, strided<[1]>>, memref<64xf32>, !mgpu.communicator
  %wrong = memref.subview %b[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  mgpu.all_gather %wrong, %b, %comm : memref<32xf32, strided<[1]>>, memref<64xf32>, !mgpu.communicator
  return
}
//--- inplace
  %own0 = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  mgpu.all_gather %own0, %a, %comm : memref<32xf32, strided<[1]>>, memref<64xf32>, !mgpu.communicator
  %own1 = memref.subview %b[32] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 32>>
  mgpu.all_gather %own1, %b, %comm : memref<32xf32, strided<[1], offset: 32>>, memref<64xf32>, !mgpu.communicator
  return
}
//--- endless
  %r = scf.while (%i = %c0) : (index) -> index {
    %true = arith.constant true
    scf.condition(%true) %i : index
  } do {
  ^bb0(%j: index):
    %n = arith.addi %j, %c1 : index
    scf.yield %n : index
  }
  return
}
//--- oneplace
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [64], strides: [0] : memref<64xf32> to memref<64xf32, strided<[0]>>
  mgpu.memcpy %v, %x, %d0, %host : memref<64xf32, strided<[0]>>, memref<64xf32>, !mgpu.device, !mgpu.device
  return
}
//--- divide
  %q = arith.divsi %c1, %c0 : index
  mgpu.launch %d0 grid(%q) block(%c64) {
  }
  return
}
//--- reverse
  %v = memref.subview %a[63] [64] [-1] : memref<64xf32> to memref<64xf32, strided<[-1], offset: 63>>
  mgpu.memcpy %v, %x, %d0, %host : memref<64xf32, strided<[-1], offset: 63>>, memref<64xf32>, !mgpu.device, !mgpu.device
  return
}
//--- inside
  %k = arith.divui %c64, %c64 : index
  %v = memref.subview %a[%k] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: ?>>
  mgpu.launch %d0 grid(%c1) block(%c1) {
    %r = memref.reinterpret_cast %v to offset: [0], sizes: [8], strides: [1] : memref<32xf32, strided<[1], offset: ?>> to memref<8xf32, strided<[1]>>
    memref.store %one, %r[%c0] : memref<8xf32, strided<[1]>>
  }
  return
}
