// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pipeline that every program goes through, and its options.
// RUN: mgpu-opt %s --mgpu-launch-pipeline | FileCheck %s
// RUN: mgpu-opt %s --mgpu-launch-pipeline=fuse=false | FileCheck %s --check-prefix=APART
// RUN: mgpu-opt %s --mgpu-launch-pipeline=entry=other | FileCheck %s --check-prefix=OTHER

// CHECK-LABEL: func.func @main
func.func @main(%d: !mgpu.device, %one: f32) {
  // CHECK: mgpu.alloc
  // CHECK-NOT: mgpu.alloc
  // CHECK: mgpu.launch {{.*}} attributes {mgpu.name = "fill_exp"}
  // CHECK-NOT: mgpu.launch
  // APART: mgpu.alloc
  // APART: mgpu.alloc
  // APART: mgpu.launch {{.*}} attributes {mgpu.name = "fill"}
  // APART: mgpu.launch {{.*}} attributes {mgpu.name = "exp"}
  // OTHER: linalg.fill
  %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  %b = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  linalg.fill ins(%one : f32) outs(%a : memref<64xf32>)
  linalg.exp ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
  return
}

// CHECK-LABEL: func.func @other
// OTHER-LABEL: func.func @other
func.func @other() {
  return
}
