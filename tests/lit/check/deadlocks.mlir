// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives and sends that can never complete.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/never | FileCheck %s --check-prefix=NEVER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/kind | FileCheck %s --check-prefix=KIND
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/reduction | FileCheck %s --check-prefix=REDUCTION
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/root | FileCheck %s --check-prefix=ROOT
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/shape | FileCheck %s --check-prefix=SHAPE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/type | FileCheck %s --check-prefix=TYPE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/hostsync | FileCheck %s --check-prefix=HOSTSYNC
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/unmatched | FileCheck %s --check-prefix=UNMATCHED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/unmatchedrecv | FileCheck %s --check-prefix=UNMATCHEDRECV
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/cycle | FileCheck %s --check-prefix=CYCLE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/exchange | FileCheck %s --check-prefix=EXCHANGE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/pendinguse | FileCheck %s --check-prefix=PENDINGUSE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/neverused | FileCheck %s --check-prefix=NEVERUSED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/pendingother | FileCheck %s --check-prefix=PENDINGOTHER

// NEVER: error: {{.*}}deadlock: all_reduce is called by rank 0 but never by rank 1
// NEVER: note: of this communicator
// NEVER: exit=1
// KIND: error: {{.*}}deadlock: rank 1 calls broadcast where rank 0 calls all_reduce
// KIND: note: the matching call of rank 0 is here
// KIND: exit=1
// REDUCTION: error: {{.*}}deadlock: rank 1 reduces by max where the other reduces by sum
// REDUCTION: exit=1
// ROOT: error: {{.*}}deadlock: rank 1 names root 1 where the other names 0
// ROOT: exit=1
// SHAPE: error: {{.*}}deadlock: rank 1 uses a buffer of another shape
// SHAPE: exit=1
// TYPE: error: {{.*}}deadlock: rank 1 uses element type i32 where the other has f32
// TYPE: exit=1
// HOSTSYNC: error: {{.*}}deadlock: the host waits here for the all_reduce of rank 0
// HOSTSYNC: note: the call is here
// HOSTSYNC: exit=1
// UNMATCHED: error: {{.*}}deadlock: send of rank 0 to rank 1 has no matching recv
// UNMATCHED: exit=1
// UNMATCHEDRECV: error: {{.*}}deadlock: recv of rank 1 from rank 0 has no matching send
// UNMATCHEDRECV: exit=1
// CYCLE: error: {{.*}}deadlock: this {{.*}} is queued behind work that waits for its match
// CYCLE: note: the matching
// CYCLE: exit=1
// EXCHANGE-NOT: {{race|error}}
// EXCHANGE: exit=0
// NEVERUSED: error: deadlock: all_reduce is called by rank 0 but never by rank 1
// NEVERUSED: note: what waits for it is here
// NEVERUSED: exit=1
// PENDINGUSE: error: deadlock: this uses buffer 'a' of an earlier all_reduce, which other ranks call only later; move it after their calls
// PENDINGUSE: note: the call of rank 0 is here
// PENDINGUSE: exit=1
// PENDINGOTHER-NOT: {{race|error}}
// PENDINGOTHER: exit=0

//--- never
  mgpu.all_reduce %a, %a, %comm, sum stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
//--- kind
  mgpu.all_reduce %a, %a, %comm, sum stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.broadcast %b, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  return
}
//--- reduction
  mgpu.all_reduce %a, %a, %comm, sum stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.all_reduce %b, %b, %comm, max stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
//--- root
  mgpu.broadcast %a, %comm, %c0 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.broadcast %b, %comm, %c1 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  return
}
//--- shape
  %short = mgpu.alloc %d1 : !mgpu.device -> memref<32xf32>
  mgpu.broadcast %a, %comm, %c0 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.broadcast %short, %comm, %c0 stream %s1 : !mgpu.stream : memref<32xf32>, !mgpu.communicator
  return
}
//--- type
  %int = mgpu.alloc %d1 : !mgpu.device -> memref<64xi32>
  mgpu.broadcast %a, %comm, %c0 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.broadcast %int, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xi32>, !mgpu.communicator
  return
}
//--- hostsync
  mgpu.all_reduce %a, %a, %comm, sum stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.all_reduce %b, %b, %comm, sum stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
//--- unmatched
  mgpu.send %a, %comm, %c1 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  return
}
//--- unmatchedrecv
  mgpu.recv %b, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  return
}
//--- cycle
  mgpu.send %a, %comm, %c1 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.recv %a2, %comm, %c1 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.send %b, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.recv %b2, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  return
}
//--- exchange
  mgpu.send %a, %comm, %c1 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.recv %a2, %comm, %c1 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.recv %b2, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.send %b, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  return
}
//--- pendinguse
  mgpu.all_reduce %a, %a, %comm, sum stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.all_reduce %b, %b, %comm, sum stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
//--- neverused
  mgpu.all_reduce %a, %a, %comm, sum stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.memcpy %x, %a, %host, %d0 stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  return
}
//--- pendingother
  mgpu.all_reduce %a, %a, %comm, sum stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a2[%i] : memref<64xf32>
  }
  mgpu.all_reduce %b, %b, %comm, sum stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
