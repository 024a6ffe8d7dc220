// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt --split-input-file --verify-diagnostics %s

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must have operands and a result of one element type, not 'f32' and 'f64'}}
  %0 = "stablehlo.negate"(%a) : (tensor<4xf32>) -> tensor<4xf64>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{requires the same shape for all operands and results}}
  %0 = "stablehlo.negate"(%a) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{operand #0 must be ranked tensor of}}
  %0 = "stablehlo.not"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xsi32>) {
  // expected-error @below {{operand #0 must be ranked tensor of}}
  %0 = "stablehlo.negate"(%a) : (tensor<4xsi32>) -> tensor<4xsi32>
  return
}

// -----
func.func @f(%a: tensor<4xcomplex<f32>>) {
  // expected-error @below {{must give elements of type 'f32'}}
  %0 = stablehlo.real %a : (tensor<4xcomplex<f32>>) -> tensor<4xf64>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must keep an exponent bit at least}}
  %0 = stablehlo.reduce_precision %a, format = e0m10 : tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error @below {{must compare elements of one type, not 'f32' and 'f64'}}
  %0 = stablehlo.compare EQ, %a, %b : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

// -----
func.func @f(%a: tensor<4xf32>, %b: tensor<1xf32>) {
  // expected-error @below {{min must be a scalar, or of the shape of 'tensor<4xf32>', not 'tensor<1xf32>'}}
  %0 = stablehlo.clamp %b, %a, %a : (tensor<1xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%p: tensor<i1>, %a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error @below {{must choose between values of one type}}
  %0 = stablehlo.select %p, %a, %b : (tensor<i1>, tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%p: tensor<2xi1>, %a: tensor<4xf32>) {
  // expected-error @below {{pred must be a scalar}}
  %0 = stablehlo.select %p, %a, %a : tensor<2xi1>, tensor<4xf32>
  return
}

// -----
func.func @f() {
  // expected-error @below {{must give 'tensor<2xf32>', not 'tensor<3xf32>'}}
  %0 = "stablehlo.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<3xf32>
  return
}

// -----
func.func @f() {
  // expected-error @below {{dim names dimension 2 of a tensor of rank 2}}
  %0 = stablehlo.iota dim = 2 : tensor<2x3xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{cannot see 'tensor<4xf32>' as 'tensor<4x2xui8>'}}
  %0 = stablehlo.bitcast_convert %a : (tensor<4xf32>) -> tensor<4x2xui8>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{cannot repeat dimension 0 of 'tensor<4xf32>' to the size 5}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<4xf32>) -> tensor<5x2xf32>
  return
}

// -----
func.func @f(%a: tensor<2x2xf32>) {
  // expected-error @below {{dims names dimension 1 twice}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [1, 1] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error @below {{cannot concatenate 'tensor<2x3xf32>' and 'tensor<2x4xf32>' along dimension 0}}
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf32>, %i: tensor<i32>) {
  // expected-error @below {{start indices has 1 entries, not 2}}
  %0 = stablehlo.dynamic_slice %a, %i, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>) -> tensor<1x1xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf32>, %i: tensor<i32>) {
  // expected-error @below {{cannot take 4 of 3 elements of dimension 1}}
  %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 4] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf32>, %i: tensor<i32>, %j: tensor<i64>) {
  // expected-error @below {{must have start indices of one type}}
  %0 = stablehlo.dynamic_slice %a, %i, %j, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i64>) -> tensor<1x1xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %i: tensor<i32>) {
  // expected-error @below {{cannot put 'tensor<3xf32>' into 'tensor<2x3xf32>'}}
  %0 = stablehlo.dynamic_update_slice %a, %b, %i, %i : (tensor<2x3xf32>, tensor<3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error @below {{must give 'tensor<7xf32>', not 'tensor<8xf32>'}}
  %0 = stablehlo.pad %a, %s, low = [1], high = [-1], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error @below {{must have interior padding that is not negative}}
  %0 = stablehlo.pad %a, %s, low = [1], high = [1], interior = [-1] : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must keep the number of elements}}
  %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{cannot take 1:9:1 of dimension 0 of 'tensor<8xf32>'}}
  %0 = stablehlo.slice %a [1:9] : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf32>) {
  // expected-error @below {{must give 'tensor<3x2xf32>', not 'tensor<2x3xf32>'}}
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----
func.func @f(%a: tensor<3x8xf32>, %i: tensor<4x2xi64>) {
  // expected-error @below {{the index map has 1 entries, not 2}}
  %0 = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>} : (tensor<3x8xf32>, tensor<4x2xi64>) -> tensor<4x8xf32>
  return
}

// -----
func.func @f(%a: tensor<3x8xf32>, %i: tensor<4x1xi64>) {
  // expected-error @below {{cannot take slices of 2 of 3 elements of dimension 0}}
  %0 = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 8>} : (tensor<3x8xf32>, tensor<4x1xi64>) -> tensor<4x8xf32>
  return
}

// -----
func.func @f(%a: tensor<3x8xf32>, %i: tensor<4x1xi64>) {
  // expected-error @below {{must give 'tensor<4x8xf32>', not 'tensor<8x4xf32>'}}
  %0 = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>} : (tensor<3x8xf32>, tensor<4x1xi64>) -> tensor<8x4xf32>
  return
}

// -----
func.func @f(%a: tensor<8xf32>, %i: tensor<2x1xi32>, %u: tensor<3xf32>) {
  // expected-error @below {{must have updates like 'tensor<2xf32>', not 'tensor<3xf32>'}}
  %0 = "stablehlo.scatter"(%a, %i, %u) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<8xf32>, tensor<2x1xi32>, tensor<3xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @f(%a: tensor<4x3xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{cannot multiply 'tensor<4x3xf32>' and 'tensor<4xf32>'}}
  %0 = stablehlo.dot %a, %b : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4x3xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{pairs dimension 1 of 'tensor<4x3xf32>' with dimension 0 of 'tensor<4xf32>'}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<1x8x4xf32>, %b: tensor<3x3x6xf32>) {
  // expected-error @below {{has a kernel for 3 features of each group, and there are 4}}
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x4xf32>, tensor<3x3x6xf32>) -> tensor<1x6x6xf32>
  return
}

// -----
func.func @f(%a: tensor<1x8x4xf32>, %b: tensor<3x4x6xf32>) {
  // expected-error @below {{must give 'tensor<1x6x6xf32>', not 'tensor<1x7x6xf32>'}}
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x4xf32>, tensor<3x4x6xf32>) -> tensor<1x7x6xf32>
  return
}

// -----
func.func @f(%a: tensor<1x8x4xf32>, %b: tensor<3x4x6xf32>) {
  // expected-error @below {{window sizes, strides and dilations must be at least 1}}
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x4xf32>, tensor<3x4x6xf32>) -> tensor<1x6x6xf32>
  return
}

// -----
func.func @f(%a: tensor<3x2xf32>) {
  // expected-error @below {{must have square matrices, not 'tensor<3x2xf32>'}}
  %0 = stablehlo.cholesky %a, lower = true : tensor<3x2xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf32>, %s: tensor<f32>) {
  // expected-error @below {{must give 'tensor<2xf32>', not 'tensor<3xf32>'}}
  %0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf32>, %s: tensor<1xf32>) {
  // expected-error @below {{an initial value must be a scalar}}
  %0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf64>, %s: tensor<f32>) {
  // expected-error @below {{cannot combine 'tensor<2x3xf64>' and 'tensor<f32>' to elements of type 'f32'}}
  %0 = "stablehlo.reduce"(%a, %s) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<2x3xf64>, tensor<f32>) -> tensor<2xf32>
  return
}

// -----
func.func @f(%a: tensor<2x3xf32>, %s: tensor<f32>) {
  // expected-error @below {{must have a region that takes tensor<'f32'>, tensor<'f32'>}}
  %0 = "stablehlo.reduce"(%a, %s) ({
  ^bb0(%x: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return
}

// -----
func.func @f(%a: tensor<f32>) {
  // expected-error @below {{the condition must return ('tensor<i1>')}}
  %0 = stablehlo.while(%x = %a) : tensor<f32>
    cond {
    stablehlo.return %x : tensor<f32>
  } do {
    stablehlo.return %x : tensor<f32>
  }
  return
}

// -----
func.func @f(%p: tensor<i1>, %a: tensor<f64>) {
  // expected-error @below {{the first branch must return ('tensor<f32>')}}
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %a : tensor<f64>
  }, {
    stablehlo.return %a : tensor<f64>
  }) : (tensor<i1>) -> tensor<f32>
  return
}

// -----
func.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{cannot sort a tensor of rank 1 along dimension 1}}
  %0 = "stablehlo.sort"(%a) <{dimension = 1 : i64}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %r = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %r : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{has device 0 in a group twice}}
  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 0]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must have each of the devices 0 to 2 in a group}}
  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 2]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must have a channel of a positive number for global device ids}}
  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids} : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must have sizes that differ in dimension 0 alone, there by a factor}}
  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<9xf32>
  return
}

// -----
func.func @f(%a: tensor<5xf32>) {
  // expected-error @below {{cannot split dimension 0 of 'tensor<5xf32>' into 2}}
  %0 = "stablehlo.all_to_all"(%a) {split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{has device 1 as target of two pairs}}
  %0 = "stablehlo.collective_permute"(%a) {source_target_pairs = dense<[[0, 1], [1, 1]]> : tensor<2x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{names a function that is not there: @g}}
  %0 = stablehlo.composite "c" %a {decomposition = @g} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<5x3xf32>) {
  // expected-error @below {{must have rows of 4 elements at least}}
  %0:2 = chlo.top_k(%a, k = 4) : tensor<5x3xf32> -> (tensor<5x4xf32>, tensor<5x4xi32>)
  return
}

// -----
func.func @f(%a: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error @below {{must compare values of one type}}
  check.expect_eq %a, %b : tensor<4xf32>, tensor<5xf32>
  return
}

// -----
// expected-error @below {{'sum' is not a field of this}}
func.func private @f() attributes {a = #stablehlo.dot<sum = [0]>}

// -----
// expected-error @below {{'lhs_batching_dimensions' is written twice}}
func.func private @f() attributes {a = #stablehlo.dot<lhs_batching_dimensions = [0], lhs_batching_dimensions = [0]>}

// -----
// expected-error @below {{expected 'b' and 'f'}}
func.func private @f() attributes {a = #stablehlo.conv<[b, 0, 1]x[0, i, o]->[b, 0, f]>}

// -----
// expected-error @below {{expected the spatial dimensions 0 to 0}}
func.func private @f() attributes {a = #stablehlo.conv<[b, 1, f]x[0, i, o]->[b, 0, f]>}


// -----

func.func @all_reduce(%x: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error @below {{combines elements of type 'i32' as 'f32', which must be the same kind of number and no narrower}}
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
