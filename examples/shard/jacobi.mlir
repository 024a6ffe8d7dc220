// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ten steps of Jacobi's method on a 2 x 2 grid, already partitioned: each device has a block of
// 16 x 16 points with a halo of one point, which shard.update_halo brings up to date.
shard.grid @grid(shape = 2x2)
#blocks = #spmd.layout<mesh = [2, 2], split = [[0], [1]]>

func.func @main(%u: tensor<32x32xf32> {spmd.layout = #blocks}) -> (tensor<32x32xf32> {spmd.layout = #blocks}) {
  %block = spmd.full_to_shard %u : tensor<32x32xf32> to tensor<16x16xf32>
  %zero = arith.constant 0.0 : f32
  %quarter = arith.constant 0.25 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %end = scf.for %step = %c0 to %c10 step %c1 iter_args(%v = %block) -> (tensor<16x16xf32>) {
    %padded = tensor.pad %v low[1, 1] high[1, 1] {
    ^bb0(%i: index, %j: index):
      tensor.yield %zero : f32
    } : tensor<16x16xf32> to tensor<18x18xf32>
    %p = shard.update_halo %padded on @grid split_axes = [[0], [1]] halo_sizes = [1, 1, 1, 1] : tensor<18x18xf32>
    %n = tensor.extract_slice %p[0, 1] [16, 16] [1, 1] : tensor<18x18xf32> to tensor<16x16xf32>
    %s = tensor.extract_slice %p[2, 1] [16, 16] [1, 1] : tensor<18x18xf32> to tensor<16x16xf32>
    %w = tensor.extract_slice %p[1, 0] [16, 16] [1, 1] : tensor<18x18xf32> to tensor<16x16xf32>
    %e = tensor.extract_slice %p[1, 2] [16, 16] [1, 1] : tensor<18x18xf32> to tensor<16x16xf32>
    %ns = arith.addf %n, %s : tensor<16x16xf32>
    %we = arith.addf %w, %e : tensor<16x16xf32>
    %sum = arith.addf %ns, %we : tensor<16x16xf32>
    %quarters = tensor.splat %quarter : tensor<16x16xf32>
    %next = arith.mulf %sum, %quarters : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %full = spmd.shard_to_full %end : tensor<16x16xf32> to tensor<32x32xf32>
  return %full : tensor<32x32xf32>
}
