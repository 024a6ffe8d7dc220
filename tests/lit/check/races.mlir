// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which uses of one buffer the streams of the program leave unordered.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/proven | FileCheck %s --check-prefix=PROVEN
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/possible | FileCheck %s --check-prefix=POSSIBLE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/disjoint | FileCheck %s --check-prefix=DISJOINT
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/strided | FileCheck %s --check-prefix=STRIDED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/streamwait | FileCheck %s --check-prefix=STREAMWAIT
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/wrongwait | FileCheck %s --check-prefix=WRONGWAIT
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/syncstream | FileCheck %s --check-prefix=SYNCSTREAM
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/syncother | FileCheck %s --check-prefix=SYNCOTHER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/syncdevice | FileCheck %s --check-prefix=SYNCDEVICE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/blocking | FileCheck %s --check-prefix=BLOCKING
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/host | FileCheck %s --check-prefix=HOST
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/hostsynced | FileCheck %s --check-prefix=HOSTSYNCED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/sender | FileCheck %s --check-prefix=SENDER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/receiver | FileCheck %s --check-prefix=RECEIVER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/root | FileCheck %s --check-prefix=ROOT
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/everyone | FileCheck %s --check-prefix=EVERYONE

// PROVEN: <stdin>:25:3: error: race on buffer 'a'
// PROVEN: add mgpu.stream_wait
// PROVEN: <stdin>:21:3: note: the earlier use is here
// PROVEN: exit=1
// POSSIBLE: warning: possible race on buffer 'a'
// POSSIBLE: note: the earlier use is here
// POSSIBLE: exit=0
// DISJOINT-NOT: {{race|error}}
// DISJOINT: exit=0
// STRIDED-NOT: {{race|error}}
// STRIDED: exit=0
// STREAMWAIT-NOT: {{race|error}}
// STREAMWAIT: exit=0
// WRONGWAIT: error: {{.*}}race on buffer 'a'
// WRONGWAIT: exit=1
// SYNCSTREAM-NOT: {{race|error}}
// SYNCSTREAM: exit=0
// SYNCOTHER: error: {{.*}}race on buffer 'a'
// SYNCOTHER: exit=1
// SYNCDEVICE-NOT: {{race|error}}
// SYNCDEVICE: exit=0
// BLOCKING-NOT: {{race|error}}
// BLOCKING: exit=0
// HOST: error: {{.*}}race on buffer 'x'
// HOST: exit=1
// HOSTSYNCED-NOT: {{race|error}}
// HOSTSYNCED: exit=0
// SENDER: error: {{.*}}race on buffer 'a2'
// SENDER: exit=1
// RECEIVER-NOT: {{race|error}}
// RECEIVER: exit=0
// ROOT: error: {{.*}}race on buffer 'a2'
// ROOT: exit=1
// EVERYONE-NOT: {{race|error}}
// EVERYONE: exit=0

//--- proven
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- possible
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    %in = arith.cmpi ne, %i, %c1 : index
    scf.if %in {
      memref.store %one, %a[%i] : memref<64xf32>
    }
  }
  return
}
//--- disjoint
  %c32 = arith.constant 32 : index
  %lo = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  %hi = memref.subview %a[32] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 32>>
  mgpu.launch %d0 grid(%c1) block(%c32) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %lo[%i] : memref<32xf32, strided<[1]>>
  }
  mgpu.launch %d0 grid(%c1) block(%c32) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %hi[%i] : memref<32xf32, strided<[1], offset: 32>>
  }
  return
}
//--- strided
  %c32 = arith.constant 32 : index
  %ev = memref.subview %a[0] [32] [2] : memref<64xf32> to memref<32xf32, strided<[2]>>
  %od = memref.subview %a[1] [32] [2] : memref<64xf32> to memref<32xf32, strided<[2], offset: 1>>
  mgpu.launch %d0 grid(%c1) block(%c32) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %ev[%i] : memref<32xf32, strided<[2]>>
  }
  mgpu.launch %d0 grid(%c1) block(%c32) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %od[%i] : memref<32xf32, strided<[2], offset: 1>>
  }
  return
}
//--- streamwait
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.stream_wait %t0, %s0 : !mgpu.stream, !mgpu.stream
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- wrongwait
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.stream_wait %s0, %t0 : !mgpu.stream, !mgpu.stream
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- syncstream
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- syncother
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.sync_stream %s1 : !mgpu.stream
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- syncdevice
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.sync_device %d0 : !mgpu.device
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- blocking
  mgpu.launch %d0 grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- host
  mgpu.memcpy %a, %x, %d0, %host stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  %y = memref.alloc() : memref<64xf32>
  memref.copy %y, %x : memref<64xf32> to memref<64xf32>
  return
}
//--- hostsynced
  mgpu.memcpy %a, %x, %d0, %host stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.sync_stream %s0 : !mgpu.stream
  %y = memref.alloc() : memref<64xf32>
  memref.copy %y, %x : memref<64xf32> to memref<64xf32>
  return
}
//--- sender
  mgpu.memcpy %b, %a2, %d1, %d0 stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.send %a, %comm, %c1 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.recv %b2, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a2[%i] : memref<64xf32>
  }
  return
}
//--- receiver
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a2[%i] : memref<64xf32>
  }
  mgpu.send %a, %comm, %c1 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.recv %b2, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.memcpy %b, %a2, %d1, %d0 stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  return
}
//--- root
  mgpu.memcpy %b, %a2, %d1, %d0 stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.broadcast %a, %comm, %c0 stream %s0 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.broadcast %b2, %comm, %c0 stream %s1 : !mgpu.stream : memref<64xf32>, !mgpu.communicator
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a2[%i] : memref<64xf32>
  }
  return
}
//--- everyone
  mgpu.memcpy %b, %a2, %d1, %d0 stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.all_reduce %a, %a, %comm, sum stream %s0 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.all_reduce %b2, %b2, %comm, sum stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a2[%i] : memref<64xf32>
  }
  return
}
