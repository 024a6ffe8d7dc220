// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-linalg-rows-to-mgpu | FileCheck %s
// RUN: not mgpu-opt %s --convert-linalg-rows-to-mgpu=entry=host 2>&1 | FileCheck %s --check-prefix=HOST

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[ZERO:.*]]: f32)
func.func @main(%d: !mgpu.device, %zero: f32) {
  // CHECK: %[[X:.*]] = mgpu.alloc
  // CHECK: %[[S:.*]] = mgpu.alloc
  %x = mgpu.alloc %d : !mgpu.device -> memref<64x1000xf32>
  %s = mgpu.alloc %d : !mgpu.device -> memref<64xf32>

  // A block for each row: each thread adds every 256th element, the last of
  // them where there is one, and the block adds what its threads have.
  // CHECK: mgpu.launch %[[D]] grid(%c64{{.*}}) block(%c256{{.*}}) attributes {mgpu.name = "row_sum"} {
  // CHECK-NEXT: %[[ROW:.*]] = gpu.block_id x
  // CHECK-NEXT: %[[FIRST:.*]] = gpu.thread_id x
  // CHECK: %[[NONE:.*]] = arith.constant -0.000000e+00 : f32
  // CHECK: %[[BEFORE:.*]] = memref.load %[[S]][%[[ROW]]]
  // CHECK: %[[PART:.*]] = scf.for
  // CHECK: memref.load %[[X]][%[[ROW]],
  // CHECK: %[[LAST:.*]] = scf.if
  // CHECK: %[[SUM:.*]] = gpu.all_reduce add %[[LAST]] uniform
  // CHECK: %[[ALL:.*]] = arith.addf %[[BEFORE]], %[[SUM]]
  // CHECK: scf.if
  // CHECK-NEXT: memref.store %[[ALL]], %[[S]][%[[ROW]]]
  linalg.reduce ins(%x : memref<64x1000xf32>) outs(%s : memref<64xf32>) dimensions = [1] {mgpu.name = "row_sum"}
    (%in: f32, %sum: f32) {
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }

  // A group shares the rows: the sum begins with a number at hand, so that the
  // buffer is no longer loaded here.
  // CHECK: %[[T:.*]] = mgpu.alloc %[[D]] {mgpu.mark = #mgpu.mark<forwarded>}
  // CHECK: mgpu.launch %[[D]] {{.*}} attributes {mgpu.name = "fill_generic"} {
  // CHECK-NOT: memref.load %[[T]]
  // CHECK: gpu.all_reduce add
  // CHECK: arith.addf %{{.*}}, %[[ZERO]]
  %t = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  linalg.fill {mgpu.launch_group = 0 : i64} ins(%zero : f32) outs(%t : memref<64xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<64x1000xf32>) outs(%t : memref<64xf32>) attrs = {mgpu.launch_group = 0 : i64} {
  ^bb0(%in: f32, %sum: f32):
    %next = arith.addf %in, %sum : f32
    linalg.yield %next : f32
  }

  // Elements alone have no rows to share, and neither do short rows.
  // CHECK: linalg.exp
  linalg.exp ins(%x : memref<64x1000xf32>) outs(%x : memref<64x1000xf32>)
  %u = mgpu.alloc %d : !mgpu.device -> memref<64x8xf32>
  // CHECK: linalg.softmax
  linalg.softmax dimension(1) ins(%u : memref<64x8xf32>) outs(%u : memref<64x8xf32>)
  return
}

// CHECK-LABEL: func.func @host
func.func @host(%x: memref<64x1000xf32>) {
  // CHECK: linalg.softmax
  // HOST: [[@LINE+1]]:3: error: 'linalg.softmax' op computes on a memref that is not a device's as far as the text shows; copy it to a buffer of mgpu.alloc in this function, or write an mgpu.launch
  linalg.softmax dimension(1) ins(%x : memref<64x1000xf32>) outs(%x : memref<64x1000xf32>)
  return
}
