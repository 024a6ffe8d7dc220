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
    // expected-error @below {{asks for clusters of blocks, which tune chooses (cluster_x): leave them out}}
    gpu.launch_func @m::@k clusters in (%n, %n, %n) blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%a : memref<64xf32>)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: memref<64xf32>) kernel {
      cf.br ^next
    ^next:
      gpu.return
    }
  }
  func.func @main(%d: !mgpu.device, %n: index) {
    func.call @helper(%d, %n) : (!mgpu.device, index) -> ()
    return
  }
  // A function that the entry calls.
  func.func @helper(%d: !mgpu.device, %n: index) {
    %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
    // expected-error @below {{has a kernel with branches between blocks of operations; write them with scf.if, scf.while}}
    gpu.launch_func @m::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%a : memref<64xf32>)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: memref<64xf32>) workgroup(%w: memref<32xf32, 3>) kernel {
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
    gpu.func @k(%a: memref<64xf32>) private(%p: memref<32xf32, 5>) kernel {
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

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: memref<64xf32>) kernel {
      gpu.return
    }
  }
  func.func @main(%d: !mgpu.device, %n: index, %x: memref<64xf32>) {
    // expected-error @below {{computes on a memref that is not a device's as far as the text shows; copy it to a buffer of mgpu.alloc in this function, or write an mgpu.launch}}
    gpu.launch_func @m::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<64xf32>)
    return
  }
}

// -----

func.func @main(%d: !mgpu.device, %n: index) {
  %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  %b = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  // expected-error @below {{hands its token to 'gpu.memcpy'; only launches and gpu.wait may take one}}
  %t = gpu.launch async blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n)
                        threads(%tx, %ty, %tz) in (%sx = %n, %sy = %n, %sz = %n) {
    %v = memref.load %a[%tx] : memref<64xf32>
    memref.store %v, %b[%tx] : memref<64xf32>
    gpu.terminator
  }
  gpu.memcpy [%t] %a, %b : memref<64xf32>, memref<64xf32>
  return
}
