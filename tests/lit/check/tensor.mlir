// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Computations on device buffers that are not launches.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/fine | FileCheck %s --check-prefix=FINE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/host | FileCheck %s --check-prefix=HOST
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/devices | FileCheck %s --check-prefix=DEVICES
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/nowhere | FileCheck %s --check-prefix=NOWHERE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/sum | FileCheck %s --check-prefix=SUM
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/race | FileCheck %s --check-prefix=RACE

// FINE: ok: {{.*}} 1 node,
// FINE: exit=0
// HOST: error: 'linalg.copy' op computes on a memref that is not a device's as far as the text shows; copy it to a buffer of mgpu.alloc in this function, or write an mgpu.launch
// HOST: exit=1
// DEVICES: error: 'mgpu.launch' op kernel on device 0 uses buffer 'b' of device 1
// DEVICES: exit=1
// NOWHERE: error: 'scf.parallel' op uses no memref, so nothing says which device is to run it; write an mgpu.launch
// NOWHERE: exit=1
// SUM: error: 'scf.parallel' op has no form as a kernel: it needs buffers of static shapes, at most three loops, and no results
// SUM: exit=5
// RACE: error: {{.*}}race on buffer 'a'
// RACE: exit=1

//--- fine
  %view = memref.subview %a[0] [32] [2] : memref<64xf32> to memref<32xf32, strided<[2]>>
  linalg.fill ins(%one : f32) outs(%view : memref<32xf32, strided<[2]>>)
  return
}
//--- host
  linalg.copy ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  return
}
//--- devices
  linalg.copy ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
  return
}
//--- nowhere
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
  }
  return
}
//--- sum
  %sum = scf.parallel (%i) = (%c0) to (%c64) step (%c1) init (%one) -> f32 {
    %v = memref.load %a[%i] : memref<64xf32>
    scf.reduce(%v : f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  return
}
//--- race
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  linalg.fill ins(%one : f32) outs(%a : memref<64xf32>)
  return
}
