// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of all_gather, reduce_scatter, all_to_all and permute that do not match,
// never complete or race.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/gather-axis | FileCheck %s --check-prefix=GATHER-AXIS
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/scatter-axis | FileCheck %s --check-prefix=SCATTER-AXIS
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/scatter-reduction | FileCheck %s --check-prefix=SCATTER-REDUCTION
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/scatter-type | FileCheck %s --check-prefix=SCATTER-TYPE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/exchange-axes | FileCheck %s --check-prefix=EXCHANGE-AXES
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/exchange-size | FileCheck %s --check-prefix=EXCHANGE-SIZE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/pairs | FileCheck %s --check-prefix=PAIRS
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/pairs-of-another-order | FileCheck %s --check-prefix=PAIRS-OF-ANOTHER-ORDER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/kind | FileCheck %s --check-prefix=KIND
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/never | FileCheck %s --check-prefix=NEVER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/hostsync | FileCheck %s --check-prefix=HOSTSYNC
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/race | FileCheck %s --check-prefix=RACE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/race-with-source | FileCheck %s --check-prefix=RACE-WITH-SOURCE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/no-race | FileCheck %s --check-prefix=NO-RACE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/overlap | FileCheck %s --check-prefix=OVERLAP
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/scatter-overlap | FileCheck %s --check-prefix=SCATTER-OVERLAP
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/scatter-in-place | FileCheck %s --check-prefix=SCATTER-IN-PLACE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/dynamic-gather | FileCheck %s --check-prefix=DYNAMIC-GATHER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/dynamic-scatter | FileCheck %s --check-prefix=DYNAMIC-SCATTER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/dynamic-exchange | FileCheck %s --check-prefix=DYNAMIC-EXCHANGE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/dynamic-exchange-size | FileCheck %s --check-prefix=DYNAMIC-EXCHANGE-SIZE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/dynamic-permute | FileCheck %s --check-prefix=DYNAMIC-PERMUTE

// GATHER-AXIS: error: {{.*}}deadlock: rank 1 cuts along axis 1 where the other cuts along axis 0
// GATHER-AXIS: note: the matching call of rank 0 is here
// GATHER-AXIS: exit=1
// SCATTER-AXIS: error: {{.*}}deadlock: rank 1 cuts along axis 0 where the other cuts along axis 1
// SCATTER-AXIS: exit=1
// SCATTER-REDUCTION: error: {{.*}}deadlock: rank 1 reduces by max where the other reduces by sum
// SCATTER-REDUCTION: exit=1
// SCATTER-TYPE: error: {{.*}}deadlock: rank 1 uses element type i32 where the other has f32
// SCATTER-TYPE: exit=1
// EXCHANGE-AXES: error: {{.*}}deadlock: rank 1 cuts along axis 1 and joins along axis 0 where the other has 0 and 1
// EXCHANGE-AXES: exit=1
// EXCHANGE-SIZE: error: {{.*}}deadlock: rank 1 uses a buffer of another shape
// EXCHANGE-SIZE: exit=1
// PAIRS: error: {{.*}}deadlock: rank 1 names the pairs {{\[\[}}1, 0]] where the other names {{\[\[}}0, 1]]
// PAIRS: note: the matching call of rank 0 is here
// PAIRS: exit=1
// PAIRS-OF-ANOTHER-ORDER-NOT: {{race|error}}
// PAIRS-OF-ANOTHER-ORDER: exit=0
// KIND: error: {{.*}}deadlock: rank 1 calls all_to_all where rank 0 calls permute
// KIND: exit=1
// NEVER: error: {{.*}}deadlock: permute is called by rank 0 but never by rank 1
// NEVER: exit=1
// HOSTSYNC: error: {{.*}}deadlock: the host waits here for the reduce_scatter of rank 0
// HOSTSYNC: note: the call is here
// HOSTSYNC: exit=1
// RACE: error: {{.*}}race
// RACE: exit=1
// RACE-WITH-SOURCE: error: {{.*}}race
// RACE-WITH-SOURCE: exit=1
// NO-RACE-NOT: {{race|error}}
// NO-RACE: exit=0
// OVERLAP: error: {{.*}}sends a part of buffer 'a' that overlaps the part it receives into; send just what is received, or another buffer
// OVERLAP: exit=1
// SCATTER-OVERLAP: error: {{.*}}overlaps the part it receives into; receive into the rank's own slice of what is sent, or another buffer
// SCATTER-OVERLAP: exit=1
// SCATTER-IN-PLACE-NOT: {{race|error}}
// SCATTER-IN-PLACE: exit=0
// DYNAMIC-GATHER: error: 'mgpu.all_gather' op receives 6 along dimension 0; 2 ranks send 4 each
// DYNAMIC-GATHER: exit=1
// DYNAMIC-SCATTER: error: 'mgpu.reduce_scatter' op sends 5 along dimension 0; 2 ranks receive 2 each
// DYNAMIC-SCATTER: exit=1
// DYNAMIC-EXCHANGE: error: 'mgpu.all_to_all' op dimension 0 of 5 does not divide among 2 ranks
// DYNAMIC-EXCHANGE: exit=1
// DYNAMIC-EXCHANGE-SIZE: error: 'mgpu.all_to_all' op receives a buffer of shape [6]; it does not hold what 2 ranks cut from [4] each along axis 0, joined along axis 0
// DYNAMIC-EXCHANGE-SIZE: exit=1
// DYNAMIC-PERMUTE: error: 'mgpu.permute' op send and receive buffers must have the same shape; of these dynamic types the sizes differ
// DYNAMIC-PERMUTE: exit=1

//--- gather-axis
  %p = mgpu.alloc %d0 : !mgpu.device -> memref<4x4xf32>
  %q = mgpu.alloc %d1 : !mgpu.device -> memref<4x4xf32>
  %v = mgpu.alloc %d0 : !mgpu.device -> memref<2x4xf32>
  %w = mgpu.alloc %d1 : !mgpu.device -> memref<2x4xf32>
  %h = mgpu.alloc %d0 : !mgpu.device -> memref<4x2xf32>
  %k = mgpu.alloc %d1 : !mgpu.device -> memref<4x2xf32>
  mgpu.all_gather %p, %p, %comm stream %s0 : !mgpu.stream axis = 0 : memref<4x4xf32>, memref<4x4xf32>, !mgpu.communicator
  mgpu.all_gather %q, %q, %comm stream %s1 : !mgpu.stream axis = 1 : memref<4x4xf32>, memref<4x4xf32>, !mgpu.communicator
  return
}
//--- scatter-axis
  %p = mgpu.alloc %d0 : !mgpu.device -> memref<4x4xf32>
  %q = mgpu.alloc %d1 : !mgpu.device -> memref<4x4xf32>
  %v = mgpu.alloc %d0 : !mgpu.device -> memref<2x4xf32>
  %w = mgpu.alloc %d1 : !mgpu.device -> memref<2x4xf32>
  %h = mgpu.alloc %d0 : !mgpu.device -> memref<4x2xf32>
  %k = mgpu.alloc %d1 : !mgpu.device -> memref<4x2xf32>
  %x0 = mgpu.alloc %d0 : !mgpu.device -> memref<2x8xf32>
  %x1 = mgpu.alloc %d1 : !mgpu.device -> memref<4x4xf32>
  %y = mgpu.alloc %d1 : !mgpu.device -> memref<2x4xf32>
  mgpu.reduce_scatter %x0, %v, %comm, sum stream %s0 : !mgpu.stream axis = 1 : memref<2x8xf32>, memref<2x4xf32>, !mgpu.communicator
  mgpu.reduce_scatter %x1, %y, %comm, sum stream %s1 : !mgpu.stream axis = 0 : memref<4x4xf32>, memref<2x4xf32>, !mgpu.communicator
  return
}
//--- scatter-reduction
  %p = mgpu.alloc %d0 : !mgpu.device -> memref<4x4xf32>
  %q = mgpu.alloc %d1 : !mgpu.device -> memref<4x4xf32>
  %v = mgpu.alloc %d0 : !mgpu.device -> memref<2x4xf32>
  %w = mgpu.alloc %d1 : !mgpu.device -> memref<2x4xf32>
  %h = mgpu.alloc %d0 : !mgpu.device -> memref<4x2xf32>
  %k = mgpu.alloc %d1 : !mgpu.device -> memref<4x2xf32>
  mgpu.reduce_scatter %p, %v, %comm, sum stream %s0 : !mgpu.stream axis = 0 : memref<4x4xf32>, memref<2x4xf32>, !mgpu.communicator
  mgpu.reduce_scatter %q, %w, %comm, max stream %s1 : !mgpu.stream axis = 0 : memref<4x4xf32>, memref<2x4xf32>, !mgpu.communicator
  return
}
//--- scatter-type
  %p = mgpu.alloc %d0 : !mgpu.device -> memref<4x4xf32>
  %q = mgpu.alloc %d1 : !mgpu.device -> memref<4x4xf32>
  %v = mgpu.alloc %d0 : !mgpu.device -> memref<2x4xf32>
  %w = mgpu.alloc %d1 : !mgpu.device -> memref<2x4xf32>
  %h = mgpu.alloc %d0 : !mgpu.device -> memref<4x2xf32>
  %k = mgpu.alloc %d1 : !mgpu.device -> memref<4x2xf32>
  %i = mgpu.alloc %d1 : !mgpu.device -> memref<4x4xi32>
  %j = mgpu.alloc %d1 : !mgpu.device -> memref<2x4xi32>
  mgpu.reduce_scatter %p, %v, %comm, sum stream %s0 : !mgpu.stream axis = 0 : memref<4x4xf32>, memref<2x4xf32>, !mgpu.communicator
  mgpu.reduce_scatter %i, %j, %comm, sum stream %s1 : !mgpu.stream axis = 0 : memref<4x4xi32>, memref<2x4xi32>, !mgpu.communicator
  return
}
//--- exchange-axes
  %p = mgpu.alloc %d0 : !mgpu.device -> memref<4x4xf32>
  %q = mgpu.alloc %d1 : !mgpu.device -> memref<4x4xf32>
  %v = mgpu.alloc %d0 : !mgpu.device -> memref<2x4xf32>
  %w = mgpu.alloc %d1 : !mgpu.device -> memref<2x4xf32>
  %h = mgpu.alloc %d0 : !mgpu.device -> memref<4x2xf32>
  %k = mgpu.alloc %d1 : !mgpu.device -> memref<4x2xf32>
  %r = mgpu.alloc %d0 : !mgpu.device -> memref<2x8xf32>
  %u = mgpu.alloc %d1 : !mgpu.device -> memref<8x2xf32>
  mgpu.all_to_all %p, %r, %comm stream %s0 : !mgpu.stream splitAxis = 0 concatAxis = 1 : memref<4x4xf32>, memref<2x8xf32>, !mgpu.communicator
  mgpu.all_to_all %q, %u, %comm stream %s1 : !mgpu.stream splitAxis = 1 concatAxis = 0 : memref<4x4xf32>, memref<8x2xf32>, !mgpu.communicator
  return
}
//--- exchange-size
  %p = mgpu.alloc %d0 : !mgpu.device -> memref<4x4xf32>
  %q = mgpu.alloc %d1 : !mgpu.device -> memref<4x4xf32>
  %v = mgpu.alloc %d0 : !mgpu.device -> memref<2x4xf32>
  %w = mgpu.alloc %d1 : !mgpu.device -> memref<2x4xf32>
  %h = mgpu.alloc %d0 : !mgpu.device -> memref<4x2xf32>
  %k = mgpu.alloc %d1 : !mgpu.device -> memref<4x2xf32>
  mgpu.all_to_all %p, %p, %comm stream %s0 : !mgpu.stream splitAxis = 0 concatAxis = 0 : memref<4x4xf32>, memref<4x4xf32>, !mgpu.communicator
  mgpu.all_to_all %w, %w, %comm stream %s1 : !mgpu.stream splitAxis = 0 concatAxis = 0 : memref<2x4xf32>, memref<2x4xf32>, !mgpu.communicator
  return
}
//--- pairs
  mgpu.permute %a, %a2, %comm stream %s0 : !mgpu.stream pairs = [[0, 1]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.permute %b, %b2, %comm stream %s1 : !mgpu.stream pairs = [[1, 0]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
//--- pairs-of-another-order
  mgpu.permute %a, %a2, %comm stream %s0 : !mgpu.stream pairs = [[0, 1], [1, 0]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.permute %b, %b2, %comm stream %s1 : !mgpu.stream pairs = [[1, 0], [0, 1]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
//--- kind
  mgpu.permute %a, %a2, %comm stream %s0 : !mgpu.stream pairs = [[0, 1]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.all_to_all %b, %b2, %comm stream %s1 : !mgpu.stream splitAxis = 0 concatAxis = 0 : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
//--- never
  mgpu.permute %a, %a2, %comm stream %s0 : !mgpu.stream pairs = [[0, 0]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
//--- hostsync
  %p = mgpu.alloc %d0 : !mgpu.device -> memref<4x4xf32>
  %q = mgpu.alloc %d1 : !mgpu.device -> memref<4x4xf32>
  %v = mgpu.alloc %d0 : !mgpu.device -> memref<2x4xf32>
  %w = mgpu.alloc %d1 : !mgpu.device -> memref<2x4xf32>
  %h = mgpu.alloc %d0 : !mgpu.device -> memref<4x2xf32>
  %k = mgpu.alloc %d1 : !mgpu.device -> memref<4x2xf32>
  mgpu.reduce_scatter %p, %v, %comm, sum stream %s0 : !mgpu.stream axis = 0 : memref<4x4xf32>, memref<2x4xf32>, !mgpu.communicator
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.reduce_scatter %q, %w, %comm, sum stream %s1 : !mgpu.stream axis = 0 : memref<4x4xf32>, memref<2x4xf32>, !mgpu.communicator
  return
}
//--- race
  mgpu.permute %a, %a2, %comm stream %s0 : !mgpu.stream pairs = [[0, 1]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.permute %b, %b2, %comm stream %s1 : !mgpu.stream pairs = [[0, 1]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a2[%i] : memref<64xf32>
  }
  return
}
//--- race-with-source
  mgpu.permute %a, %a2, %comm stream %s0 : !mgpu.stream pairs = [[0, 1]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.permute %b, %b2, %comm stream %s1 : !mgpu.stream pairs = [[0, 1]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- no-race
  mgpu.permute %a, %a2, %comm stream %s0 : !mgpu.stream pairs = [[0, 1]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.permute %b, %b2, %comm stream %s1 : !mgpu.stream pairs = [[0, 1]] : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  %t1 = mgpu.create_stream %d1 : !mgpu.device -> !mgpu.stream
  mgpu.launch %d1 grid(%c1) block(%c64) stream %t1 {
    %i = gpu.thread_id x
    memref.store %one, %b[%i] : memref<64xf32>
  }
  return
}
//--- overlap
  %lo = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  %mid = memref.subview %a[16] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 16>>
  mgpu.permute %lo, %mid, %comm stream %s0 : !mgpu.stream pairs = [] : memref<32xf32, strided<[1]>>, memref<32xf32, strided<[1], offset: 16>>, !mgpu.communicator
  return
}
//--- scatter-overlap
  %hi = memref.subview %a[32] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 32>>
  mgpu.reduce_scatter %a, %hi, %comm, sum stream %s0 : !mgpu.stream axis = 0 : memref<64xf32>, memref<32xf32, strided<[1], offset: 32>>, !mgpu.communicator
  return
}
//--- scatter-in-place
  %lo = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  %hi = memref.subview %b[32] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 32>>
  mgpu.reduce_scatter %a, %lo, %comm, sum stream %s0 : !mgpu.stream axis = 0 : memref<64xf32>, memref<32xf32, strided<[1]>>, !mgpu.communicator
  mgpu.reduce_scatter %b, %hi, %comm, sum stream %s1 : !mgpu.stream axis = 0 : memref<64xf32>, memref<32xf32, strided<[1], offset: 32>>, !mgpu.communicator
  return
}
//--- dynamic-gather
  %n = arith.constant 4 : index
  %m = arith.constant 6 : index
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %a2[0] [%m] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.all_gather %p, %q, %comm : memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>, !mgpu.communicator
  return
}
//--- dynamic-scatter
  %n = arith.constant 5 : index
  %m = arith.constant 2 : index
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %a2[0] [%m] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.reduce_scatter %p, %q, %comm, sum : memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>, !mgpu.communicator
  return
}
//--- dynamic-exchange
  %n = arith.constant 5 : index
  %m = arith.constant 5 : index
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %a2[0] [%m] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.all_to_all %p, %q, %comm splitAxis = 0 concatAxis = 0 : memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>, !mgpu.communicator
  return
}
//--- dynamic-exchange-size
  %n = arith.constant 4 : index
  %m = arith.constant 6 : index
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %a2[0] [%m] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.all_to_all %p, %q, %comm splitAxis = 0 concatAxis = 0 : memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>, !mgpu.communicator
  return
}
//--- dynamic-permute
  %n = arith.constant 4 : index
  %m = arith.constant 6 : index
  %p = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  %q = memref.subview %a2[0] [%m] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
  mgpu.permute %p, %q, %comm pairs = [] : memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>, !mgpu.communicator
  return
}
