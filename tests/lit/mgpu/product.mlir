// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// A product has the matrices that its launch or its kernel has as arguments.

// CHECK-LABEL: func.func @entry
// CHECK-SAME: mgpu.product = #mgpu.product<m = 4, n = 8, k = 16, a = f16, b = f16, c = f32, turned = true : [<argument = 0, rows = 4, columns = 16, rowStride = 16, columnStride = 1>, <argument = 1, rows = 16, columns = 8, rowStride = 1, columnStride = 16>, <argument = 2, rows = 4, columns = 8, rowStride = 8, columnStride = 1>]>
func.func @entry(%a: memref<4x16xf16>, %b: memref<8x16xf16>, %c: memref<4x8xf32>) attributes {mgpu.product = #mgpu.product<m = 4, n = 8, k = 16, a = f16, b = f16, c = f32, turned = true : [<argument = 0, rows = 4, columns = 16, rowStride = 16, columnStride = 1>, <argument = 1, rows = 16, columns = 8, rowStride = 1, columnStride = 16>, <argument = 2, rows = 4, columns = 8, rowStride = 8, columnStride = 1>]>} {
  return
}

// -----

// expected-error@+1 {{is a product, and its arguments are other matrices than A, B and C}}
func.func @stride(%a: memref<4x16xf16>, %b: memref<16x8xf16>) attributes {mgpu.product = #mgpu.product<m = 4, n = 8, k = 16, a = f16, b = f16, c = f32 : [<argument = 0, rows = 4, columns = 16, rowStride = 20, columnStride = 1>, <argument = 1, rows = 16, columns = 8, rowStride = 8, columnStride = 1>]>} {
  return
}

// -----

// expected-error@+1 {{is a product, and its arguments are other matrices than A, B and C}}
func.func @type(%a: memref<4x16xf32>, %b: memref<16x8xf16>) attributes {mgpu.product = #mgpu.product<m = 4, n = 8, k = 16, a = f16, b = f16, c = f32 : [<argument = 0, rows = 4, columns = 16, rowStride = 16, columnStride = 1>, <argument = 1, rows = 16, columns = 8, rowStride = 8, columnStride = 1>]>} {
  return
}

// -----

// expected-error@+1 {{is a product, and its arguments are other matrices than A, B and C}}
func.func @argument(%a: memref<4x16xf16>, %b: memref<16x8xf16>) attributes {mgpu.product = #mgpu.product<m = 4, n = 8, k = 16, a = f16, b = f16, c = f32 : [<argument = 0, rows = 4, columns = 16, rowStride = 16, columnStride = 1>, <argument = 9, rows = 16, columns = 8, rowStride = 8, columnStride = 1>]>} {
  return
}

// -----

// expected-error@+1 {{matrix 1 is not 16 x 8, 1 times}}
func.func @sizes(%a: memref<4x16xf16>, %b: memref<8x16xf16>) attributes {mgpu.product = #mgpu.product<m = 4, n = 8, k = 16, a = f16, b = f16, c = f32 : [<argument = 0, rows = 4, columns = 16, rowStride = 16, columnStride = 1>, <argument = 1, rows = 8, columns = 16, rowStride = 16, columnStride = 1>]>} {
  return
}

// -----

// expected-error@+1 {{matrices 0 and 1 are one argument}}
func.func @twice(%a: memref<8x8xf16>) attributes {mgpu.product = #mgpu.product<m = 8, n = 8, k = 8, a = f16, b = f16, c = f32 : [<argument = 0, rows = 8, columns = 8, rowStride = 8, columnStride = 1>, <argument = 0, rows = 8, columns = 8, rowStride = 8, columnStride = 1>]>} {
  return
}

// -----

// expected-error@+1 {{a size of a product is 0; sizes are from 1 to 2^30}}
func.func @empty() attributes {mgpu.product = #mgpu.product<m = 0, n = 8, k = 8, a = f16, b = f16, c = f32>} {
  return
}

// -----

// expected-error@+1 {{has 'mgpu.product', which is no #mgpu.product}}
func.func @unit() attributes {mgpu.product} {
  return
}

// -----

func.func @launch(%d: !mgpu.device, %a: memref<4x16xf32>, %b: memref<?x8xf32>, %c: memref<4x9xf32>, %one: index) {
  mgpu.launch %d args(%a, %b : memref<4x16xf32>, memref<?x8xf32>) grid(%one) block(%one)
      attributes {mgpu.product = #mgpu.product<m = 4, n = 8, k = 16, a = f32, b = f32, c = f32>} {
  }
  // expected-error@+1 {{is a product, and its arguments are other matrices than A, B and C}}
  mgpu.launch %d args(%a, %b, %c : memref<4x16xf32>, memref<?x8xf32>, memref<4x9xf32>) grid(%one) block(%one)
      attributes {mgpu.product = #mgpu.product<m = 4, n = 8, k = 16, a = f32, b = f32, c = f32>} {
  }
  return
}
