// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-place-host-memory --split-input-file --verify-diagnostics

func.func @main(%n: index, %v: f32) {
  // expected-error @below {{is memory that devices use, of a size that is not a constant}}
  %m = memref.alloc(%n) : memref<?xf32>
  memref.store %v, %m[%n] : memref<?xf32>
  return
}

// -----

// expected-error @below {{has an argument that devices use, which needs a static shape and the default layout}}
func.func @main(%m: memref<?xf32>, %n: index, %v: f32) {
  memref.store %v, %m[%n] : memref<?xf32>
  return
}

// -----

func.func private @make() -> memref<4xf32>
func.func @main(%n: index, %v: f32) {
  %m = call @make() : () -> memref<4xf32>
  // expected-error @below {{uses a memref whose memory the text of this function does not show}}
  memref.store %v, %m[%n] : memref<4xf32>
  return
}
