// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-split-reductions | FileCheck %s
// RUN: mgpu-opt %s --mgpu-launch-pipeline | FileCheck %s --check-prefix=LAUNCH

#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[ZERO:.*]]: f32)
// LAUNCH-LABEL: func.func @main
func.func @main(%d: !mgpu.device, %zero: f32) {
  // The sum of all elements has 512 blocks, and then one, whose launch begins
  // the sum as well.
  // CHECK: %[[X:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<67108864xf32>
  // CHECK: %[[S:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<f32>
  // CHECK: %[[CHUNKS:.*]] = memref.expand_shape %[[X]] {{.*}} into memref<512x131072xf32>
  // CHECK: %[[PARTS:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<512xf32>
  // CHECK: %[[NONE:.*]] = arith.constant -0.000000e+00 : f32
  // CHECK: linalg.fill ins(%[[NONE]] : f32) outs(%[[PARTS]] : memref<512xf32>)
  // CHECK: linalg.generic {{.*}} ins(%[[CHUNKS]] : memref<512x131072xf32>) outs(%[[PARTS]] : memref<512xf32>) attrs = {mgpu.name = "sum_chunks"}
  // CHECK: linalg.fill ins(%[[ZERO]] : f32) outs(%[[S]] : memref<f32>)
  // CHECK: linalg.generic {{.*}} ins(%[[PARTS]] : memref<512xf32>) outs(%[[S]] : memref<f32>) attrs = {mgpu.name = "sum"}
  // LAUNCH: mgpu.launch {{.*}} grid(%c512{{.*}} attributes {mgpu.name = "fill_sum_chunks"}
  // LAUNCH: mgpu.launch {{.*}} grid(%c1_{{.*}} attributes {mgpu.name = "fill_sum"}
  %x = mgpu.alloc %d : !mgpu.device -> memref<67108864xf32>
  %s = mgpu.alloc %d : !mgpu.device -> memref<f32>
  linalg.fill ins(%zero : f32) outs(%s : memref<f32>)
  linalg.reduce ins(%x : memref<67108864xf32>) outs(%s : memref<f32>) dimensions = [0] {mgpu.name = "sum"}
    (%in: f32, %sum: f32) {
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }

  // Columns: the chunks are blocks along y. One more operation takes the row
  // that is left.
  // CHECK: %[[WHOLE:.*]] = memref.subview %{{.*}}[0, 0] [8192, 64] [1, 1]
  // CHECK: memref.expand_shape %[[WHOLE]] {{.*}} into memref<64x128x64xf32
  // CHECK: attrs = {mgpu.name = "generic_chunks"}
  // CHECK: %[[REST:.*]] = memref.subview %{{.*}}[8192, 0] [1, 64] [1, 1]
  // CHECK: linalg.generic {{.*}} ins(%[[REST]] {{.*}} attrs = {mgpu.name = "generic_rest"}
  // CHECK: linalg.generic {{.*}} ins(%{{.*}} : memref<64x64xf32>) outs(%{{.*}} : memref<64xf32>)
  // CHECK: arith.maximumf
  // LAUNCH: mgpu.launch {{.*}} grid(%c2, %c64, {{.*}} attributes {mgpu.name = "fill_generic_chunks"}
  %y = mgpu.alloc %d : !mgpu.device -> memref<8193x64xf32>
  %t = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  linalg.generic {indexing_maps = [#ji, #i], iterator_types = ["parallel", "reduction"]}
      ins(%y : memref<8193x64xf32>) outs(%t : memref<64xf32>) {
  ^bb0(%in: f32, %most: f32):
    %next = arith.maximumf %in, %most : f32
    linalg.yield %next : f32
  }

  // Dimensions that follow each other in memory count as one, here those of
  // images, whose channels are columns.
  // CHECK: %[[IMAGES:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<8x64x64x32xf32>
  // CHECK: %[[PIXELS:.*]] = memref.collapse_shape %[[IMAGES]] {{\[}}[0, 1, 2], [3]] : memref<8x64x64x32xf32> into memref<32768x32xf32>
  // CHECK: memref.expand_shape %[[PIXELS]] {{.*}} into memref<256x128x32xf32>
  // CHECK: linalg.generic {{.*}} ins(%{{.*}} : memref<256x32xf32>) outs(%{{.*}} : memref<32xf32>) attrs = {mgpu.name = "reduce"}
  %images = mgpu.alloc %d : !mgpu.device -> memref<8x64x64x32xf32>
  %channels = mgpu.alloc %d : !mgpu.device -> memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%channels : memref<32xf32>)
  linalg.reduce ins(%images : memref<8x64x64x32xf32>) outs(%channels : memref<32xf32>) dimensions = [0, 1, 2]
    (%in: f32, %sum: f32) {
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }

  // So do those of a row that is too short to be split, as threads share it; those of a few elements do not.
  // CHECK-NOT: expand_shape
  // CHECK: memref.collapse_shape {{.*}} {{\[}}[0, 1]] : memref<255x257xf32> into memref<65535xf32>
  // CHECK-NOT: memref.collapse_shape
  // CHECK: linalg.reduce {{.*}} ins(%{{.*}} : memref<4x7xf32>)
  %square = mgpu.alloc %d : !mgpu.device -> memref<255x257xf32>
  linalg.reduce ins(%square : memref<255x257xf32>) outs(%s : memref<f32>) dimensions = [0, 1]
    (%in: f32, %sum: f32) {
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }
  %few = mgpu.alloc %d : !mgpu.device -> memref<4x7xf32>
  linalg.reduce ins(%few : memref<4x7xf32>) outs(%s : memref<f32>) dimensions = [0, 1]
    (%in: f32, %sum: f32) {
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }

  // Rows that are many, or short, stay whole, and so does what uses its place
  // in the row.
  // CHECK-NOT: expand_shape
  // CHECK-NOT: collapse_shape
  // CHECK: return
  %many = mgpu.alloc %d : !mgpu.device -> memref<65x65536xf32>
  %u = mgpu.alloc %d : !mgpu.device -> memref<65xf32>
  linalg.reduce ins(%many : memref<65x65536xf32>) outs(%u : memref<65xf32>) dimensions = [1]
    (%in: f32, %sum: f32) {
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }
  %short = mgpu.alloc %d : !mgpu.device -> memref<65535xf32>
  linalg.reduce ins(%short : memref<65535xf32>) outs(%s : memref<f32>) dimensions = [0]
    (%in: f32, %sum: f32) {
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }
  %places = mgpu.alloc %d : !mgpu.device -> memref<i64>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : memref<67108864xf32>) outs(%places : memref<i64>) {
  ^bb0(%in: f32, %sum: i64):
    %k = linalg.index 0 : index
    %place = arith.index_cast %k : index to i64
    %next = arith.addi %place, %sum : i64
    linalg.yield %next : i64
  }
  return
}
