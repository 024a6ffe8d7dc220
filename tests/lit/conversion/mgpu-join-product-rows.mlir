// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-join-product-rows | FileCheck %s
// RUN: mgpu-opt %s --mgpu-launch-pipeline | FileCheck %s --check-prefix=LAUNCH

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[ZERO:.*]]: f32)
// LAUNCH-LABEL: func.func @main
func.func @main(%d: !mgpu.device, %zero: f32) {
  // Two vectors by the rows of a matrix: one reduction with two results, which a
  // fill for each begins.
  // CHECK: %[[X:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<2x256xbf16>
  // CHECK: %[[W:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<512x256xbf16>
  // CHECK: %[[Y:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<2x512xf32>
  // CHECK: %[[Y0:.*]] = memref.subview %[[Y]][0, 0] [1, 512] [1, 1]
  // CHECK: linalg.fill ins(%[[ZERO]] : f32) outs(%[[Y0]]
  // CHECK: %[[Y1:.*]] = memref.subview %[[Y]][1, 0] [1, 512] [1, 1]
  // CHECK: linalg.fill ins(%[[ZERO]] : f32) outs(%[[Y1]]
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X]], %[[X]], %[[W]] : {{.*}}) outs(%[[Y0]], %[[Y1]] : {{.*}}) attrs = {mgpu.name = "matmul"}
  // CHECK: ^bb0(%[[X0:.*]]: bf16, %[[X1:.*]]: bf16, %[[W0:.*]]: bf16, %{{.*}}: f32, %{{.*}}: f32):
  // CHECK: arith.extf %[[W0]]
  // CHECK-NOT: arith.extf %[[W0]]
  // CHECK: linalg.yield
  // CHECK-NOT: linalg.matmul
  // LAUNCH: mgpu.launch {{.*}} grid(%c512{{.*}} attributes {mgpu.name = "fill_fill_matmul"}
  %x = mgpu.alloc %d : !mgpu.device -> memref<2x256xbf16>
  %w = mgpu.alloc %d : !mgpu.device -> memref<512x256xbf16>
  %y = mgpu.alloc %d : !mgpu.device -> memref<2x512xf32>
  linalg.fill ins(%zero : f32) outs(%y : memref<2x512xf32>)
  linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : memref<2x256xbf16>, memref<512x256xbf16>) outs(%y : memref<2x512xf32>)

  // One of f32 by the columns; its chunks have a launch with a result for each
  // vector, and then one adds them up.
  // CHECK: linalg.generic {{.*}} ins(%[[A:.*]], %[[A]], %{{.*}} : memref<2x256xf32>, memref<2x256xf32>, memref<256x1024xf32>)
  // LAUNCH: mgpu.launch {{.*}} attributes {mgpu.name = "fill_fill_matmul_chunks"}
  // LAUNCH: mgpu.launch {{.*}} attributes {mgpu.name = "fill_fill_matmul"}
  %a = mgpu.alloc %d : !mgpu.device -> memref<2x256xf32>
  %b = mgpu.alloc %d : !mgpu.device -> memref<256x1024xf32>
  %c = mgpu.alloc %d : !mgpu.device -> memref<2x1024xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<2x1024xf32>)
  linalg.matmul ins(%a, %b : memref<2x256xf32>, memref<256x1024xf32>) outs(%c : memref<2x1024xf32>)

  // One vector stays as it is here, and its chunks follow.
  // CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : memref<1x256xbf16>, memref<256x512xbf16>)
  // LAUNCH: mgpu.launch {{.*}} attributes {mgpu.name = "fill_matmul_chunks"}
  // LAUNCH: mgpu.launch {{.*}} attributes {mgpu.name = "matmul"}
  %p = mgpu.alloc %d : !mgpu.device -> memref<1x256xbf16>
  %q = mgpu.alloc %d : !mgpu.device -> memref<256x512xbf16>
  %r = mgpu.alloc %d : !mgpu.device -> memref<1x512xf32>
  linalg.matmul ins(%p, %q : memref<1x256xbf16>, memref<256x512xbf16>) outs(%r : memref<1x512xf32>)

  // Two of bf16 by the columns, too.
  // CHECK: linalg.generic {{.*}} ins(%[[X]], %[[X]], %{{.*}} : memref<2x256xbf16>, memref<2x256xbf16>, memref<256x512xbf16>)
  // LAUNCH: mgpu.launch {{.*}} attributes {mgpu.name = "fill_fill_matmul_chunks"}
  // LAUNCH: mgpu.launch {{.*}} attributes {mgpu.name = "matmul"}
  linalg.matmul ins(%x, %q : memref<2x256xbf16>, memref<256x512xbf16>) outs(%y : memref<2x512xf32>)

  // Not so: sums of bf16, a small matrix.
  // CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : memref<2x256xbf16>, memref<256x512xbf16>)
  // CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : memref<2x256xf32>, memref<256x64xf32>)
  // LAUNCH: mgpu.launch {{.*}} attributes {mgpu.name = "matmul", mgpu.product = #mgpu.product<{{.*}}>}
  // LAUNCH: mgpu.launch {{.*}} attributes {mgpu.name = "matmul", mgpu.product = #mgpu.product<{{.*}}>}
  %narrow = mgpu.alloc %d : !mgpu.device -> memref<2x512xbf16>
  linalg.matmul ins(%x, %q : memref<2x256xbf16>, memref<256x512xbf16>) outs(%narrow : memref<2x512xbf16>)
  %small = mgpu.alloc %d : !mgpu.device -> memref<256x64xf32>
  %e = mgpu.alloc %d : !mgpu.device -> memref<2x64xf32>
  linalg.matmul ins(%a, %small : memref<2x256xf32>, memref<256x64xf32>) outs(%e : memref<2x64xf32>)
  return
}
