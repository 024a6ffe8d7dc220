// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-select-entry=entry=step | FileCheck %s

// CHECK: func.func private @main
func.func @main() {
  return
}

// CHECK: func.func @step
func.func @step() {
  return
}
