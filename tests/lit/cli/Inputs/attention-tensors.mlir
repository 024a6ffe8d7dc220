// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// examples/attention/attention.mlir on tensors.
#rows = affine_map<(b, t, d) -> (b, t)>
#all = affine_map<(b, t, d) -> (b, t, d)>
func.func @main(%x: tensor<2x48x32xf32>, %wq: tensor<32x32xf32>, %wk: tensor<32x32xf32>, %wv: tensor<32x32xf32>) -> tensor<2x48x32xf32> {
  %no_p = arith.constant dense<0.0> : tensor<96x32xf32>
  %tokens = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x48x32xf32> into tensor<96x32xf32>
  %q2 = linalg.matmul ins(%tokens, %wq : tensor<96x32xf32>, tensor<32x32xf32>) outs(%no_p : tensor<96x32xf32>) -> tensor<96x32xf32>
  %k2 = linalg.matmul ins(%tokens, %wk : tensor<96x32xf32>, tensor<32x32xf32>) outs(%no_p : tensor<96x32xf32>) -> tensor<96x32xf32>
  %v2 = linalg.matmul ins(%tokens, %wv : tensor<96x32xf32>, tensor<32x32xf32>) outs(%no_p : tensor<96x32xf32>) -> tensor<96x32xf32>
  %q = tensor.expand_shape %q2 [[0, 1], [2]] output_shape [2, 48, 32] : tensor<96x32xf32> into tensor<2x48x32xf32>
  %k = tensor.expand_shape %k2 [[0, 1], [2]] output_shape [2, 48, 32] : tensor<96x32xf32> into tensor<2x48x32xf32>
  %v = tensor.expand_shape %v2 [[0, 1], [2]] output_shape [2, 48, 32] : tensor<96x32xf32> into tensor<2x48x32xf32>
  %e = tensor.empty() : tensor<2x32x48xf32>
  %kT = linalg.transpose ins(%k : tensor<2x48x32xf32>) outs(%e : tensor<2x32x48xf32>) permutation = [0, 2, 1]
  %no_s = arith.constant dense<0.0> : tensor<2x48x48xf32>
  %s = linalg.batch_matmul ins(%q, %kT : tensor<2x48x32xf32>, tensor<2x32x48xf32>) outs(%no_s : tensor<2x48x48xf32>) -> tensor<2x48x48xf32>
  %scale = arith.constant dense<0.176776695> : tensor<2x48x48xf32>
  %scaled = arith.mulf %s, %scale : tensor<2x48x48xf32>
  %w = linalg.softmax dimension(2) ins(%scaled : tensor<2x48x48xf32>) outs(%no_s : tensor<2x48x48xf32>) -> tensor<2x48x48xf32>
  %r = linalg.batch_matmul ins(%w, %v : tensor<2x48x48xf32>, tensor<2x48x32xf32>) outs(%x : tensor<2x48x32xf32>) -> tensor<2x48x32xf32>
  %zero = arith.constant dense<0.0> : tensor<2x48xf32>
  %width = arith.constant 32.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %mean = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r : tensor<2x48x32xf32>) outs(%zero : tensor<2x48xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %part = arith.divf %in, %width : f32
    %next = arith.addf %sum, %part : f32
    linalg.yield %next : f32
  } -> tensor<2x48xf32>
  %variance = linalg.generic {indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r, %mean : tensor<2x48x32xf32>, tensor<2x48xf32>) outs(%zero : tensor<2x48xf32>) {
  ^bb0(%in: f32, %m: f32, %sum: f32):
    %centred = arith.subf %in, %m : f32
    %square = arith.mulf %centred, %centred : f32
    %part = arith.divf %square, %width : f32
    %next = arith.addf %sum, %part : f32
    linalg.yield %next : f32
  } -> tensor<2x48xf32>
  %n = linalg.generic {indexing_maps = [#rows, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mean, %variance : tensor<2x48xf32>, tensor<2x48xf32>) outs(%r : tensor<2x48x32xf32>) {
  ^bb0(%m: f32, %var: f32, %in: f32):
    %centred = arith.subf %in, %m : f32
    %moved = arith.addf %var, %epsilon : f32
    %deviation = math.sqrt %moved : f32
    %normal = arith.divf %centred, %deviation : f32
    linalg.yield %normal : f32
  } -> tensor<2x48x32xf32>
  return %n : tensor<2x48x32xf32>
}
