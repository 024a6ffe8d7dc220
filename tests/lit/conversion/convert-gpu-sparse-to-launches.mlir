// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-gpu-sparse-to-launches | FileCheck %s
// RUN: mgpu-opt %s --convert-gpu-sparse-to-launches --convert-gpu-launch-to-mgpu | FileCheck %s --check-prefix=LIBRARY

// A library is told what the launch computes, and of which memory: kind, which factors are
// transposed, rows, columns, entries, breadth.
// LIBRARY: mgpu.launch %{{.*}} args(%[[P:.*]], %[[I:.*]], %[[V:.*]], %[[X:.*]], %[[Y:.*]] : memref<3xindex>, memref<2xindex>, memref<2xf32>, memref<2xf32>, memref<2xf32>)
// LIBRARY-NOT: extract_aligned_pointer_as_index
// LIBRARY: mgpu.sparse = #mgpu.sparse_product<kind = 0, rows = 2, columns = 2, entries = 2>

// Handles go, tokens stay: what makes no launch hands on the tokens it waits for.
// CHECK-LABEL: func.func @main
// CHECK-NOT: llvm.call
// CHECK: %[[T0:.*]] = gpu.wait async
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: gpu.alloc (%[[ONE]]) : memref<?xi8>
// CHECK: %[[T1:.*]] = gpu.launch async [%[[T0]]] blocks
// CHECK: %[[ROW:.*]] = gpu.global_id x
// CHECK-NOT: scf.if
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: memref.load %{{.*}}[%[[ROW]]] : memref<2xf32>
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[ROW]]] : memref<2xf32>
// CHECK: mgpu.name = "spmv"
// CHECK: gpu.wait [%[[T1]]]
// CHECK-NOT: sparse
llvm.func @mgpuCreateSparseEnv()
func.func @main(%p: memref<3xindex>, %i: memref<2xindex>, %v: memref<2xf32>, %x: memref<2xf32>, %y: memref<2xf32>) {
  llvm.call @mgpuCreateSparseEnv() : () -> ()
  %c2 = arith.constant 2 : index
  %t0 = gpu.wait async
  %a, %t1 = gpu.create_csr async [%t0] %c2, %c2, %c2, %p, %i, %v : memref<3xindex>, memref<2xindex>, memref<2xf32>
  %dx, %t2 = gpu.create_dn_tensor async [%t1] %x, %c2 : index into memref<2xf32>
  %dy, %t3 = gpu.create_dn_tensor async [%t2] %y, %c2 : index into memref<2xf32>
  %s, %t4 = gpu.spmv_buffer_size async [%t3] %a, %dx, %dy into f32
  %b = gpu.alloc (%s) : memref<?xi8>
  %t5 = gpu.spmv async [%t4] %a, %dx, %dy, %b : memref<?xi8> into f32
  %t6 = gpu.destroy_sp_mat async [%t5] %a
  gpu.wait [%t6]
  return
}
