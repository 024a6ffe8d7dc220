// RUN: mgpu-opt --split-input-file --verify-diagnostics %s

func.func @communicator_empty() {
  // expected-error @below {{'mgpu.create_communicator' op expected at least one device [create_communicator_c1]}}
  %c = "mgpu.create_communicator"() : () -> !mgpu.communicator
  return
}

// -----

func.func @communicator_repeats(%d: !mgpu.device, %e: !mgpu.device) {
  // expected-error @below {{'mgpu.create_communicator' op devices 0 and 2 of the communicator are the same [create_communicator_c2]}}
  %c = mgpu.create_communicator %d, %e, %d : !mgpu.device, !mgpu.device, !mgpu.device -> !mgpu.communicator
  return
}

// -----

func.func @communicator_repeats_index() {
  %c3 = arith.constant 3 : index
  %d = mgpu.get_device %c3 : !mgpu.device
  %e = mgpu.get_device %c3 : !mgpu.device
  // expected-error @below {{'mgpu.create_communicator' op devices 0 and 1 of the communicator are both device 3 [create_communicator_c2]}}
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  return
}

// -----

func.func @communicator_host(%d: !mgpu.device) {
  %c-1 = arith.constant -1 : index
  %h = mgpu.get_device %c-1 : !mgpu.device
  // expected-error @below {{'mgpu.create_communicator' op device 1 of the communicator is the host [create_communicator_c3]}}
  %c = mgpu.create_communicator %d, %h : !mgpu.device, !mgpu.device -> !mgpu.communicator
  return
}

// -----

func.func @all_reduce_shape(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<5xf32>) {
  // expected-error @below {{'mgpu.all_reduce' op send and receive buffers must have the same shape, got 'memref<4xf32>' and 'memref<5xf32>' [all_reduce_c2]}}
  mgpu.all_reduce %a, %b, %c, sum : memref<4xf32>, memref<5xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_reduce_element_type(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<4xi32>) {
  // expected-error @below {{'mgpu.all_reduce' op send buffer has element type 'f32', but receive buffer has 'i32' [all_reduce_c1]}}
  mgpu.all_reduce %a, %b, %c, sum : memref<4xf32>, memref<4xi32>, !mgpu.communicator
  return
}

// -----

func.func @all_reduce_vectors(%c: !mgpu.communicator, %a: memref<4xvector<4xf32>>) {
  // expected-error @below {{'mgpu.all_reduce' op expected a buffer of integers or floats, got 'memref<4xvector<4xf32>>' [all_reduce_c3]}}
  mgpu.all_reduce %a, %a, %c, max : memref<4xvector<4xf32>>, memref<4xvector<4xf32>>, !mgpu.communicator
  return
}

// -----

func.func @all_reduce_kind(%c: !mgpu.communicator, %a: memref<4xf32>) {
  // expected-error @below {{unknown reduction kind 'avg', expected sum, prod, min or max}}
  mgpu.all_reduce %a, %a, %c, avg : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_size(%d: !mgpu.device, %e: !mgpu.device, %a: memref<4x3xf32>, %b: memref<12x3xf32>) {
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.all_gather' op receive buffer must have the size of the send buffer or 2 times it in dimension 0, got 12 and 4 [all_gather_c6]}}
  mgpu.all_gather %a, %b, %c : memref<4x3xf32>, memref<12x3xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_multiple(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<6xf32>) {
  // expected-error @below {{'mgpu.all_gather' op receive buffer must have the size of the send buffer or a multiple of it in dimension 0, got 6 and 4 [all_gather_c6]}}
  mgpu.all_gather %a, %b, %c : memref<4xf32>, memref<6xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_in_place(%d: !mgpu.device, %e: !mgpu.device, %a: memref<5xf32>) {
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.all_gather' op size 5 of dimension 0 is not divisible by the number of devices, 2 [all_gather_c5]}}
  mgpu.all_gather %a, %a, %c : memref<5xf32>, memref<5xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_rank(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<2x4xf32>) {
  // expected-error @below {{'mgpu.all_gather' op send buffer has rank 1, but receive buffer has 2 [all_gather_c2]}}
  mgpu.all_gather %a, %b, %c : memref<4xf32>, memref<2x4xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_scalar(%d: !mgpu.device, %e: !mgpu.device, %a: memref<f32>) {
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.all_gather' op buffers of rank 0 cannot hold the contributions of 2 devices [all_gather_c3]}}
  mgpu.all_gather %a, %a, %c : memref<f32>, memref<f32>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_other_dimension(%c: !mgpu.communicator, %a: memref<4x3xf32>, %b: memref<8x6xf32>) {
  // expected-error @below {{'mgpu.all_gather' op send and receive buffers may differ in dimension 0 only, got 'memref<4x3xf32>' and 'memref<8x6xf32>' [all_gather_c4]}}
  mgpu.all_gather %a, %b, %c : memref<4x3xf32>, memref<8x6xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_element_type(%c: !mgpu.communicator, %a: memref<4xf32>, %b: memref<8xf16>) {
  // expected-error @below {{'mgpu.all_gather' op send buffer has element type 'f32', but receive buffer has 'f16' [all_gather_c1]}}
  mgpu.all_gather %a, %b, %c : memref<4xf32>, memref<8xf16>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_axis(%c: !mgpu.communicator, %a: memref<4x3xf32>, %b: memref<8x3xf32>) {
  // expected-error @below {{'mgpu.all_gather' op axis 2 is out of range for buffers of rank 2 [all_gather_c7]}}
  mgpu.all_gather %a, %b, %c axis = 2 : memref<4x3xf32>, memref<8x3xf32>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_axis_of_scalar(%c: !mgpu.communicator, %a: memref<f32>) {
  // expected-error @below {{'mgpu.all_gather' op axis 1 is out of range for buffers of rank 0 [all_gather_c7]}}
  mgpu.all_gather %a, %a, %c axis = 1 : memref<f32>, memref<f32>, !mgpu.communicator
  return
}

// -----

func.func @all_gather_along_another(%c: !mgpu.communicator, %a: memref<4x3xf32>, %b: memref<8x3xf32>) {
  // expected-error @below {{'mgpu.all_gather' op send and receive buffers may differ in dimension 1 only, got 'memref<4x3xf32>' and 'memref<8x3xf32>' [all_gather_c4]}}
  mgpu.all_gather %a, %b, %c axis = 1 : memref<4x3xf32>, memref<8x3xf32>, !mgpu.communicator
  return
}

// -----

func.func @broadcast_root(%d: !mgpu.device, %e: !mgpu.device, %a: memref<4xf32>) {
  %c2 = arith.constant 2 : index
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.broadcast' op root rank 2 is out of range: the communicator has 2 devices [broadcast_c2]}}
  mgpu.broadcast %a, %c, %c2 : memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @broadcast_negative(%c: !mgpu.communicator, %a: memref<4xf32>) {
  %r = arith.constant -1 : index
  // expected-error @below {{'mgpu.broadcast' op root rank must not be negative, got -1 [broadcast_c1]}}
  mgpu.broadcast %a, %c, %r : memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @send_rank(%d: !mgpu.device, %a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c = mgpu.create_communicator %d : !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.send' op destination rank 1 is out of range: the communicator has 1 device [send_c2]}}
  mgpu.send %a, %c, %c1 : memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @recv_rank(%d: !mgpu.device, %a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c = mgpu.create_communicator %d : !mgpu.device -> !mgpu.communicator
  // expected-error @below {{'mgpu.recv' op source rank 1 is out of range: the communicator has 1 device [recv_c2]}}
  mgpu.recv %a, %c, %c1 : memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @send_negative(%c: !mgpu.communicator, %a: memref<4xf32>) {
  %r = arith.constant -1 : index
  // expected-error @below {{'mgpu.send' op destination rank must not be negative, got -1 [send_c1]}}
  mgpu.send %a, %c, %r : memref<4xf32>, !mgpu.communicator
  return
}

// -----

func.func @recv_negative(%c: !mgpu.communicator, %a: memref<4xf32>) {
  %r = arith.constant -1 : index
  // expected-error @below {{'mgpu.recv' op source rank must not be negative, got -1 [recv_c1]}}
  mgpu.recv %a, %c, %r : memref<4xf32>, !mgpu.communicator
  return
}
