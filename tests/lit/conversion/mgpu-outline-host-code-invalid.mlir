// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-outline-host-code --split-input-file --verify-diagnostics

func.func @main(%d: !mgpu.device, %n: index) {
  %m = mgpu.alloc %d : !mgpu.device -> memref<4xindex>
  %w = memref.load %m[%n] : memref<4xindex>
  // expected-error @below {{depends on a value that is computed when the program runs}}
  mgpu.launch %d grid(%w) block(%n) {
    memref.store %n, %m[%n] : memref<4xindex>
  }
  return
}
