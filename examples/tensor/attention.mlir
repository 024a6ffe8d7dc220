// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two attention layers on four devices with tensor parallelism: each device has two of the eight
// heads of 8 (columns of wq, wk, wv and rows of wo). The layer is a function called twice.
#cols = #spmd.layout<mesh = [4], split = [[], [0]]>
#rows = #spmd.layout<mesh = [4], split = [[0], []]>

// x + attention(x), of this device's two heads; the heads' parts are added over the devices.
func.func private @layer(%x: tensor<32x64xf32>, %wq: tensor<64x16xf32>, %wk: tensor<64x16xf32>,
                         %wv: tensor<64x16xf32>, %wo: tensor<16x64xf32>) -> tensor<32x64xf32> {
  %no_p = arith.constant dense<0.0> : tensor<32x16xf32>
  %q = linalg.matmul ins(%x, %wq : tensor<32x64xf32>, tensor<64x16xf32>) outs(%no_p : tensor<32x16xf32>) -> tensor<32x16xf32>
  %k = linalg.matmul ins(%x, %wk : tensor<32x64xf32>, tensor<64x16xf32>) outs(%no_p : tensor<32x16xf32>) -> tensor<32x16xf32>
  %v = linalg.matmul ins(%x, %wv : tensor<32x64xf32>, tensor<64x16xf32>) outs(%no_p : tensor<32x16xf32>) -> tensor<32x16xf32>
  %q3 = tensor.expand_shape %q [[0], [1, 2]] output_shape [32, 2, 8] : tensor<32x16xf32> into tensor<32x2x8xf32>
  %k3 = tensor.expand_shape %k [[0], [1, 2]] output_shape [32, 2, 8] : tensor<32x16xf32> into tensor<32x2x8xf32>
  %v3 = tensor.expand_shape %v [[0], [1, 2]] output_shape [32, 2, 8] : tensor<32x16xf32> into tensor<32x2x8xf32>
  %e1 = tensor.empty() : tensor<2x32x8xf32>
  %e2 = tensor.empty() : tensor<2x8x32xf32>
  %qh = linalg.transpose ins(%q3 : tensor<32x2x8xf32>) outs(%e1 : tensor<2x32x8xf32>) permutation = [1, 0, 2]
  %kh = linalg.transpose ins(%k3 : tensor<32x2x8xf32>) outs(%e2 : tensor<2x8x32xf32>) permutation = [1, 2, 0]
  %vh = linalg.transpose ins(%v3 : tensor<32x2x8xf32>) outs(%e1 : tensor<2x32x8xf32>) permutation = [1, 0, 2]
  %no_s = arith.constant dense<0.0> : tensor<2x32x32xf32>
  %s = linalg.batch_matmul ins(%qh, %kh : tensor<2x32x8xf32>, tensor<2x8x32xf32>) outs(%no_s : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %scale = arith.constant dense<0.353553391> : tensor<2x32x32xf32>
  %scaled = arith.mulf %s, %scale : tensor<2x32x32xf32>
  %p = linalg.softmax dimension(2) ins(%scaled : tensor<2x32x32xf32>) outs(%no_s : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %no_o = arith.constant dense<0.0> : tensor<2x32x8xf32>
  %o = linalg.batch_matmul ins(%p, %vh : tensor<2x32x32xf32>, tensor<2x32x8xf32>) outs(%no_o : tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
  %e3 = tensor.empty() : tensor<32x2x8xf32>
  %o3 = linalg.transpose ins(%o : tensor<2x32x8xf32>) outs(%e3 : tensor<32x2x8xf32>) permutation = [1, 0, 2]
  %o2 = tensor.collapse_shape %o3 [[0], [1, 2]] : tensor<32x2x8xf32> into tensor<32x16xf32>
  %no_y = arith.constant dense<0.0> : tensor<32x64xf32>
  %part = linalg.matmul ins(%o2, %wo : tensor<32x16xf32>, tensor<16x64xf32>) outs(%no_y : tensor<32x64xf32>) -> tensor<32x64xf32>
  %sum = spmd.all_reduce sum ins(%part : tensor<32x64xf32>) outs(%part : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = arith.addf %x, %sum : tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}

func.func @main(%x: tensor<32x64xf32>, %wq: tensor<64x64xf32> {spmd.layout = #cols},
                %wk: tensor<64x64xf32> {spmd.layout = #cols}, %wv: tensor<64x64xf32> {spmd.layout = #cols},
                %wo: tensor<64x64xf32> {spmd.layout = #rows}) -> tensor<32x64xf32> {
  %q = spmd.full_to_shard %wq : tensor<64x64xf32> to tensor<64x16xf32>
  %k = spmd.full_to_shard %wk : tensor<64x64xf32> to tensor<64x16xf32>
  %v = spmd.full_to_shard %wv : tensor<64x64xf32> to tensor<64x16xf32>
  %o = spmd.full_to_shard %wo : tensor<64x64xf32> to tensor<16x64xf32>
  %y = func.call @layer(%x, %q, %k, %v, %o) : (tensor<32x64xf32>, tensor<64x16xf32>, tensor<64x16xf32>, tensor<64x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %z = func.call @layer(%y, %q, %k, %v, %o) : (tensor<32x64xf32>, tensor<64x16xf32>, tensor<64x16xf32>, tensor<64x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  return %z : tensor<32x64xf32>
}
