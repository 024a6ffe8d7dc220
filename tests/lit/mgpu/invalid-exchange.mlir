// RUN: mgpu-opt --split-input-file --verify-diagnostics %s

func.func @reduce_scatter_element_type(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<2xi32>) {
  // expected-error @below {{'mgpu.reduce_scatter' op send buffer has element type 'f32', but receive buffer has 'i32' [reduce_scatter_c1]}}
  mgpu.reduce_scatter %a, %b, %c, sum : memref<4xf32>, memref<2xi32>, !mgpu.communicator
  return
}

// -----

func.func @reduce_scatter_rank(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<2x1xf32>) {
  // expected-error @below {{'mgpu.reduce_scatter' op send buffer has rank 1, but receive buffer has 2 [reduce_scatter_c2]}}
  mgpu.reduce_scatter %a, %b, %c, sum : memref<4xf32>, memref<2x1xf32>, !mgpu.communicator
  return
}

// -----

func.func @reduce_scatter_axis(%c: !mgpu.communicator, %a: memref<4x2xf32>, %b: memref<2x2xf32>) {
  // expected-error @below {{'mgpu.reduce_scatter' op axis 2 is out of range for buffers of rank 2 [reduce_scatter_c3]}}
  mgpu.reduce_scatter %a, %b, %c, sum axis = 2 : memref<4x2xf32>, memref<2x2xf32>, !mgpu.communicator
  return
}

// -----

func.func @reduce_scatter_negative_axis(%c: !mgpu.communicator, %a: memref<4x2xf32>, %b: memref<2x2xf32>) {
  // expected-error @below {{'mgpu.reduce_scatter' op axis -1 is out of range for buffers of rank 2 [reduce_scatter_c3]}}
  mgpu.reduce_scatter %a, %b, %c, sum axis = -1 : memref<4x2xf32>, memref<2x2xf32>, !mgpu.communicator
  return
}

// -----

func.func @reduce_scatter_scalar(%c: !mgpu.communicator, %a: memref<f32>, %b: memref<f32>) {
  // expected-error @below {{'mgpu.reduce_scatter' op axis 0 is out of range for buffers of rank 0 [reduce_scatter_c3]}}
  mgpu.reduce_scatter %a, %b, %c, sum : memref<f32>, memref<f32>, !mgpu.communicator
  return
}

// -----

func.func @reduce_scatter_other_dimension(%c: !mgpu.communicator, %a: memref<4x2xf32>, %b: memref<2x3xf32>) {
  // expected-error @below {{'mgpu.reduce_scatter' op send and receive buffers may differ in dimension 0 only, got 'memref<4x2xf32>' and 'memref<2x3xf32>' [reduce_scatter_c4]}}
  mgpu.reduce_scatter %a, %b, %c, sum : memref<4x2xf32>, memref<2x3xf32>, !mgpu.communicator
  return
}

// -----

func.func @reduce_scatter_other_dimension_of_axis(%c: !mgpu.communicator, %a: memref<4x2xf32>, %b: memref<2x1xf32>) {
  // expected-error @below {{'mgpu.reduce_scatter' op send and receive buffers may differ in dimension 1 only, got 'memref<4x2xf32>' and 'memref<2x1xf32>' [reduce_scatter_c4]}}
  mgpu.reduce_scatter %a, %b, %c, sum axis = 1 : memref<4x2xf32>, memref<2x1xf32>, !mgpu.communicator
  return
}

// -----

func.func @reduce_scatter_size(%d: !mgpu.device, %e: !mgpu.device, %a: memref<3x6xf32>, %b: memref<3x2xf32>) {
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.reduce_scatter' op dimension 1 of the send buffer must be 2 times that of the receive buffer, got 6 and 2 [reduce_scatter_c5]}}
  mgpu.reduce_scatter %a, %b, %c, sum axis = 1 : memref<3x6xf32>, memref<3x2xf32>, !mgpu.communicator
  return
}

// -----

func.func @reduce_scatter_multiple(%c: !mgpu.communicator, %a: memref<5xf32>, %b: memref<2xf32>) {
  // expected-error @below {{'mgpu.reduce_scatter' op dimension 0 of the send buffer must be a multiple of that of the receive buffer, got 5 and 2 [reduce_scatter_c5]}}
  mgpu.reduce_scatter %a, %b, %c, sum : memref<5xf32>, memref<2xf32>, !mgpu.communicator
  return
}

// -----

func.func @reduce_scatter_vectors(%c: !mgpu.communicator, %a: memref<4xvector<4xf32>>, %b: memref<2xvector<4xf32>>) {
  // expected-error @below {{'mgpu.reduce_scatter' op expected a buffer of integers or floats, got 'memref<4xvector<4xf32>>' [reduce_scatter_c6]}}
  mgpu.reduce_scatter %a, %b, %c, sum : memref<4xvector<4xf32>>, memref<2xvector<4xf32>>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_element_type(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<4xf16>) {
  // expected-error @below {{'mgpu.all_to_all' op send buffer has element type 'f32', but receive buffer has 'f16' [all_to_all_c1]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = 0 : memref<4xf32>, memref<4xf16>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_rank(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<2x2xf32>) {
  // expected-error @below {{'mgpu.all_to_all' op send buffer has rank 1, but receive buffer has 2 [all_to_all_c2]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = 0 : memref<4xf32>, memref<2x2xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_split_axis(%c: !mgpu.communicator, %a: memref<4x2xf32>, %b: memref<4x2xf32>) {
  // expected-error @below {{'mgpu.all_to_all' op splitAxis 2 is out of range for buffers of rank 2 [all_to_all_c3]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 2 concatAxis = 0 : memref<4x2xf32>, memref<4x2xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_concat_axis(%c: !mgpu.communicator, %a: memref<4x2xf32>, %b: memref<4x2xf32>) {
  // expected-error @below {{'mgpu.all_to_all' op concatAxis -2 is out of range for buffers of rank 2 [all_to_all_c3]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = -2 : memref<4x2xf32>, memref<4x2xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_divisible(%d: !mgpu.device, %e: !mgpu.device, %a: memref<4x3xf32>, %b: memref<8x1xf32>) {
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.all_to_all' op size 3 of dimension 1 is not divisible by the number of devices, 2 [all_to_all_c4]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 1 concatAxis = 0 : memref<4x3xf32>, memref<8x1xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_split_size(%d: !mgpu.device, %e: !mgpu.device, %a: memref<4x2xf32>, %b: memref<4x4xf32>) {
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.all_to_all' op receive buffer has size 4 in dimension 0, which does not follow from the send buffer's 4 [all_to_all_c5]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = 1 : memref<4x2xf32>, memref<4x4xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_concat_size(%d: !mgpu.device, %e: !mgpu.device, %a: memref<4x2xf32>, %b: memref<2x2xf32>) {
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.all_to_all' op receive buffer has size 2 in dimension 1, which does not follow from the send buffer's 2 [all_to_all_c5]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = 1 : memref<4x2xf32>, memref<2x2xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_one_axis(%c: !mgpu.communicator, %a: memref<4x2xf32>, %b: memref<2x2xf32>) {
  // expected-error @below {{'mgpu.all_to_all' op receive buffer has size 2 in dimension 0, which does not follow from the send buffer's 4 [all_to_all_c5]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = 0 : memref<4x2xf32>, memref<2x2xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_other_dimension(%c: !mgpu.communicator, %a: memref<4x2x5xf32>, %b: memref<2x4x6xf32>) {
  // expected-error @below {{'mgpu.all_to_all' op receive buffer has size 6 in dimension 2, which does not follow from the send buffer's 5 [all_to_all_c5]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = 1 : memref<4x2x5xf32>, memref<2x4x6xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_unknown_number(%c: !mgpu.communicator, %a: memref<4x2xf32>, %b: memref<3x4xf32>) {
  // expected-error @below {{'mgpu.all_to_all' op receive buffer has size 3 in dimension 0, which does not follow from the send buffer's 4 [all_to_all_c5]}}
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = 1 : memref<4x2xf32>, memref<3x4xf32>, !mgpu.communicator
  return
}

// -----

func.func @permute_element_type(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<4xi32>) {
  // expected-error @below {{'mgpu.permute' op send buffer has element type 'f32', but receive buffer has 'i32' [permute_c1]}}
  mgpu.permute %a, %b, %c pairs = [] : memref<4xf32>, memref<4xi32>, !mgpu.communicator
  return
}

// -----

func.func @permute_shape(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<5xf32>) {
  // expected-error @below {{'mgpu.permute' op send and receive buffers must have the same shape, got 'memref<4xf32>' and 'memref<5xf32>' [permute_c2]}}
  mgpu.permute %a, %b, %c pairs = [] : memref<4xf32>, memref<5xf32>, !mgpu.communicator
  return
}

// -----

func.func @permute_odd(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error @below {{'mgpu.permute' op expected a source and a target for each pair, got 3 numbers [permute_c3]}}
  "mgpu.permute"(%a, %b, %c) <{pairs = array<i64: 0, 1, 2>}> : (memref<4xf32>, memref<4xf32>, !mgpu.communicator) -> ()
  return
}

// -----

func.func @permute_negative(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error @below {{'mgpu.permute' op target must not be negative, got -1 [permute_c4]}}
  mgpu.permute %a, %b, %c pairs = [[0, -1]] : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @permute_range(%d: !mgpu.device, %e: !mgpu.device, %a: memref<4xf32>, %b: memref<4xf32>) {
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.permute' op source 2 is out of range: the communicator has 2 devices [permute_c5]}}
  mgpu.permute %a, %b, %c pairs = [[2, 0]] : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @permute_target_range(%d: !mgpu.device, %e: !mgpu.device, %a: memref<4xf32>, %b: memref<4xf32>) {
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.permute' op target 9223372036854775807 is out of range: the communicator has 2 devices [permute_c5]}}
  mgpu.permute %a, %b, %c pairs = [[1, 0], [0, 9223372036854775807]] : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @permute_source_twice(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error @below {{'mgpu.permute' op rank 0 is the source of two pairs [permute_c6]}}
  mgpu.permute %a, %b, %c pairs = [[0, 1], [0, 0]] : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @permute_target_twice(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error @below {{'mgpu.permute' op rank 1 is the target of two pairs [permute_c7]}}
  mgpu.permute %a, %b, %c pairs = [[0, 1], [1, 1]] : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @permute_pair(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error @below {{expected '['}}
  mgpu.permute %a, %b, %c pairs = [[0, 1], 2] : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_to_all_no_axis(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error @below {{expected 'concatAxis'}}
  mgpu.all_to_all %a, %b, %c splitAxis = 0 : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  return
}
