// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-spmd-to-mgpu --split-input-file --verify-diagnostics

mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%a: memref<4xf32>) {
  // expected-error @below {{'spmd.all_reduce' op names device 2; devices 0 to 1 run it}}
  spmd.all_reduce sum ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) groups [[0], [2]]
  return
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 4>
func.func @main(%a: memref<4xf32>) {
  // expected-error @below {{'spmd.all_reduce' op has groups of 2 of the 4 devices; each must be in one}}
  spmd.all_reduce sum ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) groups [[0], [2]]
  return
}

// -----

func.func @main(%a: memref<4xf32>) {
  // expected-error @below {{'spmd.permute' op names device 1; devices 0 to 0 run it}}
  spmd.permute ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) pairs [[0, 1]]
  return
}

// -----

func.func @main(%a: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'mgpu.get_device' cannot be in a function over tensors; write the collectives of the spmd dialect there}}
  %d = mgpu.get_device %c0 : !mgpu.device
  return
}

// -----

func.func @main(%a: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{takes an element out of a tensor to decide what the program does; only kernels can read tensors, so compute it from scalar arguments}}
  %n = memref.load %a[%c0] : memref<4xi32>
  return
}

// -----

func.func @main(%n: index) {
  // expected-error @below {{makes a tensor of type 'memref<?xf32>'; its shape must be known once scalar arguments are}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error @below {{'linalg.exp' has no form on buffers}}
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%a: memref<4xf32>) {
  %d = spmd.device_index : index
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %d, %c0 : index
  scf.if %first {
    // expected-error @below {{'spmd.all_reduce' op stands in a loop or branch that devices do not take alike, so that some of a group might not call it}}
    spmd.all_reduce sum ins(%a : memref<4xf32>) outs(%a : memref<4xf32>)
  }
  return
}

// -----

// Without groups, sizes are checked once the number of devices is known.
mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error @below {{'spmd.all_gather' op must have sizes that differ in dimension 0 alone, there by the size of a group}}
  spmd.all_gather ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) axis = 0
  return
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%a: memref<4xf32>) {
  // expected-error @below {{'spmd.broadcast' op has no rank 2 in its groups}}
  spmd.broadcast ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) root = 2
  return
}

// -----

func.func @main(%a: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%a : memref<4xf32>) {
  ^bb0(%out: f32):
    // expected-error @below {{'memref.alloc' op stands in the body of 'linalg.generic', which computes with numbers, not with tensors; move it before that operation}}
    %b = memref.alloc() : memref<4xf32>
    linalg.yield %out : f32
  }
  return
}

// -----

// The loop's trips depend on the device, through a value from outside it.
mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%a: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = spmd.device_index : index
  %n = scf.while (%i = %c0) : (index) -> index {
    %c = arith.cmpi slt, %i, %d : index
    scf.condition(%c) %i : index
  } do {
  ^bb0(%i: index):
    %j = arith.addi %i, %c1 : index
    scf.yield %j : index
  }
  scf.for %k = %c0 to %n step %c1 {
    // expected-error @below {{stands in a loop or branch that devices do not take alike}}
    spmd.all_reduce sum ins(%a : memref<4xf32>) outs(%a : memref<4xf32>)
  }
  return
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 4>
func.func @main() {
  spmd.on 2 to 4 {
    %a = memref.alloc() : memref<4xf32>
    // expected-error @below {{'spmd.all_reduce' op names device 0; devices 2 to 3 run it}}
    spmd.all_reduce sum ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) groups [[0, 1]]
  }
  return
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main() {
  %a = spmd.on 1 to 2 -> memref<4xf32> {
    %b = memref.alloc() : memref<4xf32>
    spmd.yield %b : memref<4xf32>
  }
  // expected-error @below {{uses a tensor on device 0, which does not have it; only the devices of the spmd.on that yields it do, or those that an spmd.move gives it}}
  linalg.exp ins(%a : memref<4xf32>) outs(%a : memref<4xf32>)
  return
}

// -----

// One device stands for all of what they do alike.
mgpu.device_config @config #mgpu.device_config<numDevices = 3>
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) attributes {mgpu.mark = #mgpu.mark<one_device>} {
  // expected-error @below {{devices do not all do this alike, so that none of them stands for all; plan all of them}}
  spmd.permute ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) pairs [[0, 1], [1, 2]]
  return
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%a: memref<4xindex>) attributes {mgpu.mark = #mgpu.mark<one_device>} {
  %d = spmd.device_index : index
  // expected-error @below {{devices do not all do this alike}}
  linalg.fill ins(%d : index) outs(%a : memref<4xindex>)
  return
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 4>
func.func @main(%a: memref<4xf32>) attributes {mgpu.mark = #mgpu.mark<one_device>} {
  // expected-error @below {{devices do not all do this alike}}
  spmd.all_reduce sum ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) groups [[0, 1], [3, 2]]
  return
}
