// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A layer of BERT (7 tokens, 768 features, 12 heads, 3072 inner features) in
// linalg by hand, with the arguments that one_layer.py gives the layer of an
// exported program.
#lhs = affine_map<(i, j, k) -> (i, k)>
#rows = affine_map<(i, j, k) -> (j, k)>
#product = affine_map<(i, j, k) -> (i, j)>
#same = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#points = affine_map<(h, i, j) -> (h, i, j)>
#point_rows = affine_map<(h, i, j) -> (h, i)>
#pair = affine_map<(h, i, j) -> (i, j)>

// The product of the rows of both, and a number for each column.
func.func private @dense(%x: tensor<7x768xf32>, %w: tensor<768x768xf32>, %bias: tensor<768xf32>) -> tensor<7x768xf32> {
  %e = tensor.empty() : tensor<7x768xf32>
  %b = linalg.broadcast ins(%bias : tensor<768xf32>) outs(%e : tensor<7x768xf32>) dimensions = [0]
  %y = linalg.matmul indexing_maps = [#lhs, #rows, #product]
    ins(%x, %w : tensor<7x768xf32>, tensor<768x768xf32>) outs(%b : tensor<7x768xf32>) -> tensor<7x768xf32>
  return %y : tensor<7x768xf32>
}

// Rows of mean 0 and variance 1, scaled and moved.
func.func private @normalise(%x: tensor<7x768xf32>, %scale: tensor<768xf32>, %shift: tensor<768xf32>) -> tensor<7x768xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 768.0 : f32
  %epsilon = arith.constant 1.0e-12 : f32
  %er = tensor.empty() : tensor<7xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<7xf32>) -> tensor<7xf32>
  %sum = linalg.generic {indexing_maps = [#same, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<7x768xf32>) outs(%zr : tensor<7xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>
  %squares = linalg.generic {indexing_maps = [#same, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x, %sum : tensor<7x768xf32>, tensor<7xf32>) outs(%zr : tensor<7xf32>) {
  ^bb0(%a: f32, %t: f32, %acc: f32):
    %m = arith.divf %t, %n : f32
    %d = arith.subf %a, %m : f32
    %q = arith.mulf %d, %d : f32
    %s = arith.addf %acc, %q : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>
  %e = tensor.empty() : tensor<7x768xf32>
  %y = linalg.generic {indexing_maps = [#same, #row, #row, #column, #column, #same], iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum, %squares, %scale, %shift : tensor<7x768xf32>, tensor<7xf32>, tensor<7xf32>, tensor<768xf32>, tensor<768xf32>)
    outs(%e : tensor<7x768xf32>) {
  ^bb0(%a: f32, %t: f32, %q: f32, %g: f32, %b: f32, %o: f32):
    %m = arith.divf %t, %n : f32
    %d = arith.subf %a, %m : f32
    %v = arith.divf %q, %n : f32
    %w = arith.addf %v, %epsilon : f32
    %r = math.rsqrt %w : f32
    %p = arith.mulf %d, %r : f32
    %z = arith.mulf %p, %g : f32
    %s = arith.addf %z, %b : f32
    linalg.yield %s : f32
  } -> tensor<7x768xf32>
  return %y : tensor<7x768xf32>
}

func.func private @plus(%x: tensor<7x768xf32>, %y: tensor<7x768xf32>) -> tensor<7x768xf32> {
  %s = arith.addf %x, %y : tensor<7x768xf32>
  return %s : tensor<7x768xf32>
}

func.func private @attend(%q: tensor<7x768xf32>, %k: tensor<7x768xf32>, %v: tensor<7x768xf32>, %mask: tensor<7x7xf32>) -> tensor<7x768xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %eighth = arith.constant 0.125 : f32
  %qh = tensor.expand_shape %q [[0], [1, 2]] output_shape [7, 12, 64] : tensor<7x768xf32> into tensor<7x12x64xf32>
  %kh = tensor.expand_shape %k [[0], [1, 2]] output_shape [7, 12, 64] : tensor<7x768xf32> into tensor<7x12x64xf32>
  %vh = tensor.expand_shape %v [[0], [1, 2]] output_shape [7, 12, 64] : tensor<7x768xf32> into tensor<7x12x64xf32>
  %es = tensor.empty() : tensor<12x7x7xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<12x7x7xf32>) -> tensor<12x7x7xf32>
  %dots = linalg.generic {indexing_maps = [affine_map<(h, i, j, d) -> (i, h, d)>, affine_map<(h, i, j, d) -> (j, h, d)>,
      affine_map<(h, i, j, d) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%qh, %kh : tensor<7x12x64xf32>, tensor<7x12x64xf32>) outs(%zs : tensor<12x7x7xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<12x7x7xf32>
  %scores = linalg.generic {indexing_maps = [#points, #pair, #points], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%dots, %mask : tensor<12x7x7xf32>, tensor<7x7xf32>) outs(%es : tensor<12x7x7xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %p = arith.mulf %a, %eighth : f32
    %s = arith.addf %p, %m : f32
    linalg.yield %s : f32
  } -> tensor<12x7x7xf32>
  %er = tensor.empty() : tensor<12x7xf32>
  %lr = linalg.fill ins(%least : f32) outs(%er : tensor<12x7xf32>) -> tensor<12x7xf32>
  %most = linalg.generic {indexing_maps = [#points, #point_rows], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%scores : tensor<12x7x7xf32>) outs(%lr : tensor<12x7xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.maximumf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<12x7xf32>
  %powers = linalg.generic {indexing_maps = [#points, #point_rows, #points], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%scores, %most : tensor<12x7x7xf32>, tensor<12x7xf32>) outs(%es : tensor<12x7x7xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %s = math.exp %d : f32
    linalg.yield %s : f32
  } -> tensor<12x7x7xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<12x7xf32>) -> tensor<12x7xf32>
  %sums = linalg.generic {indexing_maps = [#points, #point_rows], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%powers : tensor<12x7x7xf32>) outs(%zr : tensor<12x7xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<12x7xf32>
  %shares = linalg.generic {indexing_maps = [#points, #point_rows, #points], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%powers, %sums : tensor<12x7x7xf32>, tensor<12x7xf32>) outs(%es : tensor<12x7x7xf32>) {
  ^bb0(%a: f32, %t: f32, %o: f32):
    %s = arith.divf %a, %t : f32
    linalg.yield %s : f32
  } -> tensor<12x7x7xf32>
  %ec = tensor.empty() : tensor<7x12x64xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<7x12x64xf32>) -> tensor<7x12x64xf32>
  %mixed = linalg.generic {indexing_maps = [affine_map<(i, h, d, j) -> (h, i, j)>, affine_map<(i, h, d, j) -> (j, h, d)>,
      affine_map<(i, h, d, j) -> (i, h, d)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%shares, %vh : tensor<12x7x7xf32>, tensor<7x12x64xf32>) outs(%zc : tensor<7x12x64xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<7x12x64xf32>
  %y = tensor.collapse_shape %mixed [[0], [1, 2]] : tensor<7x12x64xf32> into tensor<7x768xf32>
  return %y : tensor<7x768xf32>
}

func.func @main(%x: tensor<1x7x768xf32>, %wq: tensor<768x768xf32>, %bq: tensor<768xf32>, %wk: tensor<768x768xf32>,
    %bk: tensor<768xf32>, %wv: tensor<768x768xf32>, %bv: tensor<768xf32>, %mask: tensor<1x1x7x7xf32>,
    %wo: tensor<768x768xf32>, %bo: tensor<768xf32>, %scale0: tensor<768xf32>, %shift0: tensor<768xf32>,
    %win: tensor<3072x768xf32>, %bin: tensor<3072xf32>, %wout: tensor<768x3072xf32>, %bout: tensor<768xf32>,
    %scale1: tensor<768xf32>, %shift1: tensor<768xf32>) -> tensor<1x7x768xf32> {
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.707106769 : f32
  %x0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<1x7x768xf32> into tensor<7x768xf32>
  %mask0 = tensor.collapse_shape %mask [[0, 1, 2], [3]] : tensor<1x1x7x7xf32> into tensor<7x7xf32>
  %q = call @dense(%x0, %wq, %bq) : (tensor<7x768xf32>, tensor<768x768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
  %k = call @dense(%x0, %wk, %bk) : (tensor<7x768xf32>, tensor<768x768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
  %v = call @dense(%x0, %wv, %bv) : (tensor<7x768xf32>, tensor<768x768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
  %mixed = call @attend(%q, %k, %v, %mask0) : (tensor<7x768xf32>, tensor<7x768xf32>, tensor<7x768xf32>, tensor<7x7xf32>) -> tensor<7x768xf32>
  %o = call @dense(%mixed, %wo, %bo) : (tensor<7x768xf32>, tensor<768x768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
  %s0 = call @plus(%o, %x0) : (tensor<7x768xf32>, tensor<7x768xf32>) -> tensor<7x768xf32>
  %n0 = call @normalise(%s0, %scale0, %shift0) : (tensor<7x768xf32>, tensor<768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
  %ei = tensor.empty() : tensor<7x3072xf32>
  %bi = linalg.broadcast ins(%bin : tensor<3072xf32>) outs(%ei : tensor<7x3072xf32>) dimensions = [0]
  %inner = linalg.matmul indexing_maps = [#lhs, #rows, #product]
    ins(%n0, %win : tensor<7x768xf32>, tensor<3072x768xf32>) outs(%bi : tensor<7x3072xf32>) -> tensor<7x3072xf32>
  %gelu = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
    ins(%inner : tensor<7x3072xf32>) outs(%ei : tensor<7x3072xf32>) {
  ^bb0(%a: f32, %out: f32):
    %r = arith.mulf %a, %root : f32
    %f = math.erf %r : f32
    %g = arith.addf %f, %one : f32
    %h = arith.mulf %a, %half : f32
    %s = arith.mulf %h, %g : f32
    linalg.yield %s : f32
  } -> tensor<7x3072xf32>
  %eo = tensor.empty() : tensor<7x768xf32>
  %bo1 = linalg.broadcast ins(%bout : tensor<768xf32>) outs(%eo : tensor<7x768xf32>) dimensions = [0]
  %outer = linalg.matmul indexing_maps = [#lhs, #rows, #product]
    ins(%gelu, %wout : tensor<7x3072xf32>, tensor<768x3072xf32>) outs(%bo1 : tensor<7x768xf32>) -> tensor<7x768xf32>
  %s1 = call @plus(%outer, %n0) : (tensor<7x768xf32>, tensor<7x768xf32>) -> tensor<7x768xf32>
  %n1 = call @normalise(%s1, %scale1, %shift1) : (tensor<7x768xf32>, tensor<768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
  %y = tensor.expand_shape %n1 [[0, 1], [2]] output_shape [1, 7, 768] : tensor<7x768xf32> into tensor<1x7x768xf32>
  return %y : tensor<1x7x768xf32>
}
