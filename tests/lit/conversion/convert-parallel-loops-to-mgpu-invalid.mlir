// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-parallel-loops-to-mgpu --split-input-file --verify-diagnostics

func.func @main(%d: !mgpu.device, %n: index, %one: f32) {
  // expected-error @below {{'scf.parallel' op has no form as a kernel: it needs buffers of static shapes, at most three loops, and no results}}
  %sum = scf.parallel (%i) = (%n) to (%n) step (%n) init (%one) -> f32 {
    scf.reduce(%one : f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  return
}

// -----

func.func @main(%d: !mgpu.device, %n: index, %one: f32) {
  %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  // expected-error @below {{'scf.parallel' op has no form as a kernel}}
  scf.parallel (%i, %j, %k, %l) = (%n, %n, %n, %n) to (%n, %n, %n, %n) step (%n, %n, %n, %n) {
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}

// -----

func.func @main(%n: index) {
  // expected-error @below {{'scf.parallel' op uses no memref, so nothing says which device is to run it; write an mgpu.launch}}
  scf.parallel (%i) = (%n) to (%n) step (%n) {
  }
  return
}

// -----

func.func @main(%x: memref<64xf32>, %n: index, %one: f32) {
  // expected-error @below {{'scf.parallel' op computes on a memref that is not a device's as far as the text shows; copy it to a buffer of mgpu.alloc in this function, or write an mgpu.launch}}
  scf.parallel (%i) = (%n) to (%n) step (%n) {
    memref.store %one, %x[%i] : memref<64xf32>
  }
  return
}
