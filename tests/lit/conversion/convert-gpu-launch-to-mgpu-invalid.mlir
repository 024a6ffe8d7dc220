// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-gpu-launch-to-mgpu --split-input-file --verify-diagnostics

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: memref<64xf32>) kernel {
      gpu.return
    }
  }
  func.func @main(%d: !mgpu.device, %n: index) {
    %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
    // expected-error @below {{asks for clusters of blocks whose sizes, and the grid's, are not constants}}
    gpu.launch_func @m::@k clusters in (%n, %n, %n) blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%a : memref<64xf32>)
    return
  }
}

// -----

func.func @main(%n: index, %i: i32) {
  scf.for %k = %n to %n step %n {
    gpu.set_default_device %i
  }
  // expected-error @below {{runs on a default device that depends on loops, branches or calls before it; choose it here with gpu.set_default_device}}
  %a = gpu.alloc () : memref<64xf32>
  return
}

// -----

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: memref<64xf32>) workgroup(%w: memref<32xf32, 4>) kernel {
      gpu.return
    }
  }
  func.func @main(%d: !mgpu.device, %n: index) {
    %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
    // expected-error @below {{has workgroup memory of another space than #gpu.address_space<workgroup>: give it that}}
    gpu.launch_func @m::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%a : memref<64xf32>)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: memref<64xf32>) private(%p: memref<32xf32, 7>) kernel {
      gpu.return
    }
  }
  func.func @main(%d: !mgpu.device, %n: index) {
    %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
    // expected-error @below {{has private memory of another space than #gpu.address_space<private>: give it that}}
    gpu.launch_func @m::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%a : memref<64xf32>)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: memref<64xf32>)
        workgroup(%w: memref<?xf32, #gpu.address_space<workgroup>>) kernel {
      gpu.return
    }
  }
  func.func @main(%d: !mgpu.device, %n: index) {
    %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
    // expected-error @below {{has memory of its own without a static size and the default layout}}
    gpu.launch_func @m::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%a : memref<64xf32>)
    return
  }
}

// -----

func.func @main(%n: index) {
  // expected-error @below {{allocates memory of a size that is not a constant}}
  %a = gpu.alloc (%n) : memref<?xf32>
  return
}

// -----

func.func @main(%v: f32, %m: memref<?xf32>) {
  // expected-error @below {{sets memory of a dynamic shape}}
  gpu.memset %m, %v : memref<?xf32>, f32
  return
}

// -----

// expected-error @below {{takes or returns a token, which calls cannot hand on; put what it does where it is called}}
func.func @main(%t: !gpu.async.token) {
  gpu.wait [%t]
  return
}
