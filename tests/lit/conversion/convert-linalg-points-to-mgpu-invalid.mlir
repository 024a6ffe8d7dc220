// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-linalg-points-to-mgpu --split-input-file --verify-diagnostics

func.func @main(%d: !mgpu.device) {
  %b = mgpu.alloc %d : !mgpu.device -> memref<8xf32>
  %a = memref.cast %b : memref<8xf32> to memref<?xf32>
  // expected-error @below {{'linalg.exp' op has no form as a kernel: it needs buffers of static shapes, at most three loops, and no results}}
  linalg.exp ins(%a : memref<?xf32>) outs(%a : memref<?xf32>)
  return
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'linalg.exp' op has no form as a kernel}}
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @main(%x: memref<8xf32>) {
  // expected-error @below {{'linalg.exp' op computes on a memref that is not a device's as far as the text shows; copy it to a buffer of mgpu.alloc in this function, or write an mgpu.launch}}
  linalg.exp ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

func.func @main(%x: memref<8x4xf32>) {
  // expected-error @below {{'linalg.softmax' op computes on a memref that is not a device's}}
  linalg.softmax dimension(1) ins(%x : memref<8x4xf32>) outs(%x : memref<8x4xf32>)
  return
}

// -----

// mgpu-fuse-launches would not have made this group.
func.func @main(%d: !mgpu.device) {
  %a = mgpu.alloc %d : !mgpu.device -> memref<8x8xf32>
  %b = mgpu.alloc %d : !mgpu.device -> memref<8x8xf32>
  linalg.exp {mgpu.launch_group = 0 : i64} ins(%a : memref<8x8xf32>) outs(%a : memref<8x8xf32>)
  // expected-error @below {{cannot be in launch group 0 : i64: what one writes to 'a buffer' the other touches at other points, or under another view}}
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%b : memref<8x8xf32>) permutation = [1, 0] {mgpu.launch_group = 0 : i64}
  return
}
