// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-fuse-launches | FileCheck %s
// RUN: mgpu-opt %s --mgpu-fuse-launches=products=none | FileCheck %s --check-prefix=NONE
// RUN: mgpu-opt %s --mgpu-fuse-launches --remarks-filter-missed=mgpu-fuse-launches --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @main
func.func @main(%d: !mgpu.device, %zero: f32) {
  %a = mgpu.alloc %d : !mgpu.device -> memref<64x64xf32>
  %b = mgpu.alloc %d : !mgpu.device -> memref<64x64xf32>
  %r = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index

  // The same points: the matmul's sums begin, are made and are gone on with.
  // CHECK: linalg.fill {mgpu.launch_group = 0 : i64}
  // CHECK: linalg.matmul {mgpu.launch_group = 0 : i64}
  // CHECK: scf.parallel
  // CHECK: scf.reduce
  // CHECK-NEXT: } {mgpu.launch_group = 0 : i64}
  // NONE: linalg.fill ins
  // NONE: linalg.matmul ins
  linalg.fill ins(%zero : f32) outs(%b : memref<64x64xf32>)
  linalg.matmul ins(%a, %a : memref<64x64xf32>, memref<64x64xf32>) outs(%b : memref<64x64xf32>)
  scf.parallel (%i, %j) = (%c0, %c0) to (%c64, %c64) step (%c1, %c1) {
    %v = memref.load %b[%i, %j] : memref<64x64xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %b[%i, %j] : memref<64x64xf32>
  }

  // Other threads' elements: alone.
  // CHECK: linalg.transpose ins
  // CHECK-NOT: mgpu.launch_group
  // REMARK: [[@LINE+1]]:3: remark: [Missed] not-fused {{.*}}transpose at {{.*}} with parallel at {{.*}}: what one writes to 'a buffer' the other touches at other points, or under another view
  linalg.transpose ins(%b : memref<64x64xf32>) outs(%a : memref<64x64xf32>) permutation = [1, 0]
  mgpu.sync_device %d : !mgpu.device

  // The same rows.
  // CHECK: mgpu.sync_device
  // CHECK: linalg.fill {mgpu.launch_group = 1 : i64}
  // CHECK: linalg.generic
  // CHECK-SAME: attrs = {mgpu.launch_group = 1 : i64}
  // NONE: mgpu.sync_device
  // NONE: linalg.fill {mgpu.launch_group = 0 : i64}
  linalg.fill ins(%zero : f32) outs(%r : memref<64xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<64x64xf32>) outs(%r : memref<64xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %next = arith.addf %sum, %in : f32
    linalg.yield %next : f32
  }
  mgpu.sync_device %d : !mgpu.device

  // A fill shares the launch of what it begins, not that of what comes before.
  // CHECK: mgpu.sync_device
  // CHECK: linalg.fill {mgpu.launch_group = 2 : i64}
  // CHECK: linalg.exp {mgpu.launch_group = 2 : i64}
  // CHECK: linalg.fill {mgpu.launch_group = 3 : i64}
  // CHECK: linalg.matmul {mgpu.launch_group = 3 : i64}
  %s = mgpu.alloc %d : !mgpu.device -> memref<64x64xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<64x64xf32>)
  linalg.exp ins(%a : memref<64x64xf32>) outs(%s : memref<64x64xf32>)
  linalg.fill ins(%zero : f32) outs(%b : memref<64x64xf32>)
  linalg.matmul ins(%s, %s : memref<64x64xf32>, memref<64x64xf32>) outs(%b : memref<64x64xf32>)
  mgpu.sync_device %d : !mgpu.device

  // The same points, and two fragments.
  // CHECK: mgpu.sync_device
  // CHECK: linalg.fill {mgpu.fragment = 0 : i64, mgpu.launch_group = 4 : i64}
  // CHECK: linalg.exp {mgpu.fragment = 0 : i64, mgpu.launch_group = 4 : i64}
  // CHECK: linalg.exp {mgpu.fragment = 1 : i64} ins
  // REMARK: remark: [Missed] not-fused {{.*}}exp at {{.*}} with exp at {{.*}}: it is of another fragment
  linalg.fill {mgpu.fragment = 0 : i64} ins(%zero : f32) outs(%a : memref<64x64xf32>)
  linalg.exp {mgpu.fragment = 0 : i64} ins(%a : memref<64x64xf32>) outs(%a : memref<64x64xf32>)
  linalg.exp {mgpu.fragment = 1 : i64} ins(%a : memref<64x64xf32>) outs(%a : memref<64x64xf32>)
  return
}

// Nothing calls it.
// CHECK-LABEL: func.func @uncalled
// CHECK-NOT: mgpu.launch_group
func.func @uncalled(%d: !mgpu.device, %zero: f32) {
  %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<64xf32>)
  linalg.exp ins(%a : memref<64xf32>) outs(%a : memref<64xf32>)
  return
}
