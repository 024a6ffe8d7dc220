// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A product on a 2 x 2 grid: each device has a block of each matrix. The blocks of %a are gathered
// along its row of the grid, those of %b along its column.
shard.grid @grid(shape = 2x2)

func.func @main(%a: tensor<64x48xf32>, %b: tensor<48x32xf32>) -> tensor<64x32xf32> {
  %blocks = shard.sharding @grid split_axes = [[0], [1]] : !shard.sharding
  %as = shard.shard %a to %blocks : tensor<64x48xf32>
  %bs = shard.shard %b to %blocks : tensor<48x32xf32>
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %c = linalg.matmul ins(%as, %bs : tensor<64x48xf32>, tensor<48x32xf32>) outs(%zero : tensor<64x32xf32>) -> tensor<64x32xf32>
  %cs = shard.shard %c to %blocks : tensor<64x32xf32>
  return %cs : tensor<64x32xf32>
}
