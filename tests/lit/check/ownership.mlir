// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whose buffer, whose stream, and how long.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/launch | FileCheck %s --check-prefix=LAUNCH
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/stream | FileCheck %s --check-prefix=STREAM
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/member | FileCheck %s --check-prefix=MEMBER
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/freewrong | FileCheck %s --check-prefix=FREEWRONG
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/freepending | FileCheck %s --check-prefix=FREEPENDING
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/freesynced | FileCheck %s --check-prefix=FREESYNCED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/afterfree | FileCheck %s --check-prefix=AFTERFREE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/busystream | FileCheck %s --check-prefix=BUSYSTREAM
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/destroyed | FileCheck %s --check-prefix=DESTROYED
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/elsewhere | FileCheck %s --check-prefix=ELSEWHERE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/index | FileCheck %s --check-prefix=INDEX

// LAUNCH: error: {{.*}}kernel on device 0 uses buffer 'b' of device 1
// LAUNCH: exit=1
// STREAM: error: {{.*}}launches on device 0 with a stream of device 1
// STREAM: exit=1
// MEMBER: error: {{.*}}device 1, which owns buffer 'b', is not in the communicator
// MEMBER: note: it is created here
// MEMBER: exit=1
// FREEWRONG: error: {{.*}}frees buffer 'a' of device 0 on device 1
// FREEWRONG: exit=1
// FREEPENDING: error: {{.*}}frees buffer 'a' while work on it may still run
// FREEPENDING: exit=1
// FREESYNCED-NOT: {{race|warning|error}}
// FREESYNCED: exit=0
// AFTERFREE: error: {{.*}}uses buffer 'a' after it was freed
// AFTERFREE: note: it is freed here
// AFTERFREE: exit=1
// BUSYSTREAM: error: {{.*}}destroys a stream whose work may still run
// BUSYSTREAM: exit=1
// DESTROYED: error: {{.*}}uses a destroyed stream
// DESTROYED: note: it is destroyed here
// DESTROYED: exit=1
// ELSEWHERE: warning: {{.*}}destination buffer 'a' lives on device 0, not on device 1 as said here
// ELSEWHERE: exit=0
// INDEX: error: {{.*}}index 2 is outside the 2 devices of mgpu.device_config
// INDEX: exit=1

//--- launch
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %b[%i] : memref<64xf32>
  }
  return
}
//--- stream
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s1 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- member
  %solo = mgpu.create_communicator %d0 : !mgpu.device -> !mgpu.communicator
  mgpu.all_reduce %b, %b, %solo, sum stream %s1 : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator
  return
}
//--- freewrong
  %true = arith.constant true
  %which = arith.select %true, %d1, %d0 : !mgpu.device
  mgpu.free %a, %which : memref<64xf32>, !mgpu.device
  return
}
//--- freepending
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.free %a, %d0 : memref<64xf32>, !mgpu.device
  return
}
//--- freesynced
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.free %a, %d0 : memref<64xf32>, !mgpu.device
  return
}
//--- afterfree
  mgpu.free %a, %d0 : memref<64xf32>, !mgpu.device
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- busystream
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.destroy_stream %s0 : !mgpu.stream
  return
}
//--- destroyed
  mgpu.destroy_stream %s0 : !mgpu.stream
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- elsewhere
  mgpu.memcpy %a, %x, %d1, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  return
}
//--- index
  %c2 = arith.addi %c1, %c1 : index
  %d2 = mgpu.get_device %c2 : !mgpu.device
  return
}
