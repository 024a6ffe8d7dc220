// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-select-entry=entry=step | FileCheck %s

// Another entry function goes.
// CHECK-NOT: @main
func.func @main() {
  return
}

// CHECK: func.func private @called
func.func @called() {
  return
}

// CHECK: func.func @step
func.func @step() {
  func.call @called() : () -> ()
  return
}
