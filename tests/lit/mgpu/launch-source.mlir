// RUN: mgpu-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// A kernel given as a file of CUDA C++.

// CHECK-LABEL: func.func @source
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[A:.*]]: memref<8xf32>, %[[N:.*]]: index)
func.func @source(%d: !mgpu.device, %a: memref<8xf32>, %n: index) {
  // CHECK-NEXT: mgpu.launch %[[D]] args(%[[A]], %[[N]] : memref<8xf32>, index) grid(%[[N]]) block(%[[N]]) attributes {entry = "k", source = "k.cu"}{{$}}
  mgpu.launch %d args(%a, %n : memref<8xf32>, index) grid(%n) block(%n) attributes {source = "k.cu", entry = "k"}
  // An empty body says the same.
  // CHECK-NEXT: mgpu.launch %[[D]] args(%[[A]] : memref<8xf32>) grid(%[[N]]) block(%[[N]]) attributes {entry = "k", reads = [], source = "k.cu", tunables = {A = [4, 1], B = 2 : i64}, writes = array<i64: 0>}{{$}}
  mgpu.launch %d args(%a : memref<8xf32>) grid(%n) block(%n)
      attributes {source = "k.cu", entry = "k", tunables = {A = [4, 1], B = 2}, reads = [], writes = array<i64: 0>} {
  }
  // CHECK-NEXT: return
  return
}

// -----

func.func @neither(%d: !mgpu.device, %n: index) {
  // expected-error @below {{expected the kernel's body, or the attribute 'source' with a file of CUDA C++ and no workgroup buffers}}
  mgpu.launch %d grid(%n) block(%n)
  return
}

// -----

func.func @both(%d: !mgpu.device, %n: index) {
  // expected-error @below {{takes its kernel from "k.cu", so it has no body and no workgroup buffers [launch_c11]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu", entry = "k"} {
    %i = gpu.thread_id x
  }
  return
}

// -----

func.func @no_entry(%d: !mgpu.device, %n: index) {
  // expected-error @below {{needs 'entry', the name of an extern "C" __global__ function in "k.cu" [launch_c9]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu"}
  return
}

// -----

func.func @entry_of_a_body(%d: !mgpu.device, %n: index) {
  // expected-error @below {{has 'entry', which belongs to a kernel given by 'source' [launch_c7]}}
  mgpu.launch %d grid(%n) block(%n) attributes {entry = "k"} {
  }
  return
}

// -----

func.func @path(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'source' must be the path of a file of CUDA C++ [launch_c8]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = 3, entry = "k"}
  return
}

// -----

func.func @reference(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'reference' must name a function, as in @name [launch_c10]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu", entry = "k", reference = "f"}
  return
}

// -----

func.func @argument_type(%d: !mgpu.device, %n: index) {
  // expected-error @below {{argument 0 of a kernel given as source must be a memref or a number, got '!mgpu.device' [launch_c12]}}
  mgpu.launch %d args(%d : !mgpu.device) grid(%n) block(%n) attributes {source = "k.cu", entry = "k"}
  return
}

// -----

func.func @position(%d: !mgpu.device, %n: index, %a: memref<8xf32>) {
  // expected-error @below {{'writes' names argument 1, which is not a memref among the 2 arguments [launch_c14]}}
  mgpu.launch %d args(%a, %n : memref<8xf32>, index) grid(%n) block(%n) attributes {source = "k.cu", entry = "k", writes = [1]}
  return
}

// -----

func.func @untouched(%d: !mgpu.device, %n: index, %a: memref<8xf32>) {
  // expected-error @below {{argument 1 is neither in 'reads' nor in 'writes' [launch_c15]}}
  mgpu.launch %d args(%a, %a : memref<8xf32>, memref<8xf32>) grid(%n) block(%n) attributes {source = "k.cu", entry = "k", reads = [0], writes = [0]}
  return
}

// -----

func.func @macro(%d: !mgpu.device, %n: index) {
  // expected-error @below {{tunable 'a-b' must be a name that can be a macro [launch_c18]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu", entry = "k", tunables = {"a-b" = [1]}}
  return
}

// -----

func.func @values(%d: !mgpu.device, %n: index) {
  // expected-error @below {{tunable 'A' must list numbers from 0 to 2^32 - 1, as in A = [16, 32] [launch_c19]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu", entry = "k", tunables = {A = [1, -2]}}
  return
}

// -----

func.func @twice(%d: !mgpu.device, %n: index) {
  // expected-error @below {{tunable 'A' lists 2 twice [launch_c22]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu", entry = "k", tunables = {A = [2, 4, 2]}}
  return
}

// -----

func.func @many(%d: !mgpu.device, %n: index) {
  // expected-error @below {{tunable 'A' lists 65 values; the most are 64 [launch_c20]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu", entry = "k", tunables = {A = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64]}}
  return
}

// -----

#many = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63]
func.func @together(%d: !mgpu.device, %n: index) {
  // expected-error @below {{tunables with more than 1048576 combinations: list fewer values [launch_c21]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu", entry = "k", tunables = {A = #many, B = #many, C = #many, D = #many}}
  return
}

// -----

func.func @many(%d: !mgpu.device, %n: index) {
  // expected-error @below {{takes at most 8 tunables, got 9 [launch_c17]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu", entry = "k", tunables = {A = 1, B = 1, C = 1, D = 1, E = 1, F = 1, G = 1, H = 1, I = 1}}
  return
}

// -----

func.func @positions(%d: !mgpu.device, %n: index, %a: memref<8xf32>) {
  // expected-error @below {{'reads' must list positions of arguments, as in [0, 1] [launch_c13]}}
  mgpu.launch %d args(%a : memref<8xf32>) grid(%n) block(%n) attributes {source = "k.cu", entry = "k", reads = "a"}
  return
}

// -----

func.func @tunables(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'tunables' must be like {TILE = [16, 32]}, got [1] [launch_c16]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "k.cu", entry = "k", tunables = [1]}
  return
}

// -----

func.func @objects(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'objects' must be like {sm_90 = "..."} [launch_c23]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "gpu.binary @k", entry = "k", objects = {sm_90 = 3 : i32}}
  return
}

// -----

func.func @opaque(%d: !mgpu.device, %n: index, %x: memref<8xf32>) {
  mgpu.launch %d args(%x : memref<8xf32>) grid(%n) block(%n) attributes {source = "norm", opaque, reads = [], writes = [0]}
  // expected-error @below {{is opaque, and has 'entry' of a kernel that is known [launch_c24]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "norm", opaque, entry = "k"}
  return
}

// -----

func.func @registered(%d: !mgpu.device, %n: index, %x: memref<8xf32>, %y: memref<8xf32>) {
  mgpu.launch %d args(%x, %y : memref<8xf32>, memref<8xf32>) grid(%n) block(%n) attributes {source = "norm", opaque, registered = "eps=1", reads = [0], writes = [1]}
  // expected-error @below {{'registered' must be a string beside 'opaque' [launch_c25]}}
  mgpu.launch %d grid(%n) block(%n) attributes {source = "norm", opaque, registered}
  return
}

// -----

func.func @registered_order(%d: !mgpu.device, %n: index, %x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @below {{argument 1 of a registered function is only read, and stands after one that is written [launch_c25]}}
  mgpu.launch %d args(%x, %y : memref<8xf32>, memref<8xf32>) grid(%n) block(%n) attributes {source = "norm", opaque, registered = "", reads = [1], writes = [0]}
  return
}

// -----

func.func @registered_gaps(%d: !mgpu.device, %n: index, %x: memref<4x4xf32, strided<[8, 1]>>) {
  // expected-error @below {{argument 0 of a registered function must be a memref of static shape without gaps}}
  mgpu.launch %d args(%x : memref<4x4xf32, strided<[8, 1]>>) grid(%n) block(%n) attributes {source = "norm", opaque, registered = "", reads = [], writes = [0]}
  return
}
