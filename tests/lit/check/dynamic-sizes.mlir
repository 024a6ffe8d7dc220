// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the verifiers check of static types is checked again once sizes that the
// types leave open are known; and types and sizes that no buffer can have.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/uneven | FileCheck %s --check-prefix=UNEVEN
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/indivisible | FileCheck %s --check-prefix=INDIVISIBLE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/unequal | FileCheck %s --check-prefix=UNEQUAL
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/short | FileCheck %s --check-prefix=SHORT
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/reduce | FileCheck %s --check-prefix=REDUCE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/gather | FileCheck %s --check-prefix=GATHER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/self | FileCheck %s --check-prefix=SELF
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/apart | FileCheck %s --check-prefix=APART
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/unsigned | FileCheck %s --check-prefix=UNSIGNED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/huge | FileCheck %s --check-prefix=HUGE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/onhost | FileCheck %s --check-prefix=ONHOST

// UNEVEN: error: 'mgpu.uneven_scatter' op slice 0 has size 32 in dimension 0, expected 40
// UNEVEN: exit=1
// INDIVISIBLE: error: 'mgpu.scatter' op size 63 of dimension 0 does not divide among 2 devices
// INDIVISIBLE: exit=1
// UNEQUAL: error: 'mgpu.scatter' op slice 0 has size 24 in dimension 0, expected 32
// UNEQUAL: exit=1
// SHORT: error: 'mgpu.gather' op slices add up to 48 along dimension 0, but the whole has size 64
// SHORT: exit=1
// REDUCE: error: 'mgpu.all_reduce' op send and receive buffers must have the same shape; of these dynamic types the sizes differ
// REDUCE: exit=1
// GATHER: error: 'mgpu.all_gather' op send and receive buffers differ in a dimension other than 0
// GATHER: exit=1
// SELF: error: 'mgpu.memcpy' op writes a view of buffer 'a' of which several elements may lie in one place
// SELF: exit=5
// APART: exit=0
// UNSIGNED: error: 'mgpu.alloc' op element type ui8 is not supported
// UNSIGNED: exit=5
// HUGE: error: buffer 'h' of 2^62 bytes or more cannot be addressed
// HUGE: exit=1
// ONHOST: ok:
// ONHOST: exit=0

//--- uneven
  %n = arith.constant 32 : index
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %b[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.uneven_scatter %x, %host, [%p, %q], [%d0, %d1] sliceSizes = [40, 24] axis = 0 : memref<64xf32>, !mgpu.device, [memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>], [!mgpu.device, !mgpu.device]
  return
}
//--- indivisible
  %n = arith.constant 63 : index
  %w = memref.subview %x[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %b[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.scatter %w, %host, [%p, %q], [%d0, %d1] axis = 0 : memref<?xf32, strided<[1]>>, !mgpu.device, [memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>], [!mgpu.device, !mgpu.device]
  return
}
//--- unequal
  %n = arith.constant 24 : index
  %m = arith.constant 40 : index
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %b[0] [%m] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.scatter %x, %host, [%p, %q], [%d0, %d1] axis = 0 : memref<64xf32>, !mgpu.device, [memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>], [!mgpu.device, !mgpu.device]
  return
}
//--- short
  %n = arith.constant 24 : index
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %b[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.gather %x, %host, [%p, %q], [%d0, %d1] axis = 0 : memref<64xf32>, !mgpu.device, [memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>], [!mgpu.device, !mgpu.device]
  return
}
//--- reduce
  %n = arith.constant 24 : index
  %m = arith.constant 40 : index
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %a2[0] [%m] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.all_reduce %p, %q, %comm, sum : memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>, !mgpu.communicator
  return
}
//--- gather
  %n = arith.constant 4 : index
  %p = memref.reinterpret_cast %a to offset: [0], sizes: [2, %n], strides: [%n, 1] : memref<64xf32> to memref<2x?xf32, strided<[?, 1]>>
  %q = memref.reinterpret_cast %a2 to offset: [0], sizes: [4, 8], strides: [8, 1] : memref<64xf32> to memref<4x8xf32, strided<[8, 1]>>
  mgpu.all_gather %p, %q, %comm : memref<2x?xf32, strided<[?, 1]>>, memref<4x8xf32, strided<[8, 1]>>, !mgpu.communicator
  return
}
//--- self
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [2, 2], strides: [1, 1] : memref<64xf32> to memref<2x2xf32, strided<[1, 1]>>
  %w = memref.reinterpret_cast %x to offset: [0], sizes: [2, 2], strides: [2, 1] : memref<64xf32> to memref<2x2xf32, strided<[2, 1]>>
  mgpu.memcpy %v, %w, %d0, %host : memref<2x2xf32, strided<[1, 1]>>, memref<2x2xf32, strided<[2, 1]>>, !mgpu.device, !mgpu.device
  return
}
//--- apart
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [2, 1, 2], strides: [1, 0, 2] : memref<64xf32> to memref<2x1x2xf32, strided<[1, 0, 2]>>
  %w = memref.reinterpret_cast %x to offset: [0], sizes: [2, 1, 2], strides: [2, 2, 1] : memref<64xf32> to memref<2x1x2xf32, strided<[2, 2, 1]>>
  mgpu.memcpy %v, %w, %d0, %host : memref<2x1x2xf32, strided<[1, 0, 2]>>, memref<2x1x2xf32, strided<[2, 2, 1]>>, !mgpu.device, !mgpu.device
  return
}
//--- unsigned
  %u = mgpu.alloc %d0 : !mgpu.device -> memref<4xui8>
  return
}
//--- huge
  %h = mgpu.alloc %d0 : !mgpu.device -> memref<4000000000000000000xindex>
  mgpu.launch %d0 grid(%c1) block(%c1) {
    %v = memref.load %h[%c0] : memref<4000000000000000000xindex>
    memref.store %v, %h[%c1] : memref<4000000000000000000xindex>
  }
  return
}
//--- onhost
  %p, %q = mgpu.sharded_alloc %host, %d0 logicalShape = [64] shardAxis = 0 shardKind = uniform : !mgpu.device, !mgpu.device -> memref<32xf32>, memref<32xf32>
  mgpu.scatter %x, %host, [%p, %q], [%host, %d0] axis = 0 : memref<64xf32>, !mgpu.device, [memref<32xf32>, memref<32xf32>], [!mgpu.device, !mgpu.device]
  mgpu.sharded_free [%p, %q], [%host, %d0] : [memref<32xf32>, memref<32xf32>], [!mgpu.device, !mgpu.device]
  return
}
