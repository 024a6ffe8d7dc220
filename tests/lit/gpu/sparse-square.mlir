// RUN: mgpu-tune run %s | FileCheck %s

// The square of a sparse matrix: sizes are asked for twice, as libraries want it, and how
// many entries there are is known before their memory is named.
//   1 0 2     9  0 12
//   0 3 0     0  9  0
//   4 0 5    24  0 33
// CHECK: 3
// CHECK-NEXT: 5
// CHECK: data = 
// CHECK-NEXT: [9,  12,  9,  24,  33,  0,  0,  0,  0]
// CHECK: data = 
// CHECK-NEXT: [0,  2,  1,  0,  2,  0,  0,  0,  0]
// CHECK: data = 
// CHECK-NEXT: [0,  2,  3,  5]

func.func private @printMemrefF64(memref<*xf64>)
func.func private @printMemrefI32(memref<*xi32>)
memref.global "private" constant @pos : memref<4xi32> = dense<[0, 2, 3, 5]>
memref.global "private" constant @idx : memref<5xi32> = dense<[0, 2, 1, 0, 2]>
memref.global "private" constant @val : memref<5xf64> = dense<[1.0, 2.0, 3.0, 4.0, 5.0]>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c9 = arith.constant 9 : index
  %hpos = memref.get_global @pos : memref<4xi32>
  %hidx = memref.get_global @idx : memref<5xi32>
  %hval = memref.get_global @val : memref<5xf64>
  %pos = gpu.alloc () : memref<4xi32>
  %idx = gpu.alloc () : memref<5xi32>
  %val = gpu.alloc () : memref<5xf64>
  gpu.memcpy %pos, %hpos : memref<4xi32>, memref<4xi32>
  gpu.memcpy %idx, %hidx : memref<5xi32>, memref<5xi32>
  gpu.memcpy %val, %hval : memref<5xf64>, memref<5xf64>
  %t0 = gpu.wait async
  %a, %t1 = gpu.create_csr async [%t0] %c3, %c3, %c5, %pos, %idx, %val : memref<4xi32>, memref<5xi32>, memref<5xf64>
  %b, %t2 = gpu.create_csr async [%t1] %c3, %c3, %c5, %pos, %idx, %val : memref<4xi32>, memref<5xi32>, memref<5xf64>
  %cpos, %t3 = gpu.alloc async [%t2] () : memref<4xi32>
  %none, %t4 = gpu.alloc async [%t3] () : memref<1xi32>
  %nonev, %t5 = gpu.alloc async [%t4] () : memref<1xf64>
  %c, %t6 = gpu.create_csr async [%t5] %c3, %c3, %c0, %cpos, %none, %nonev : memref<4xi32>, memref<1xi32>, memref<1xf64>
  %d, %t7 = gpu.spgemm_create_descr async [%t6]
  %buf0, %t8 = gpu.alloc async [%t7] (%c4) : memref<?xi8>
  %s0, %t9 = gpu.spgemm_work_estimation_or_compute async [%t8] {WORK_ESTIMATION} %a, %b, %c, %d, %c0, %buf0 : f64 into memref<?xi8>
  %buf1, %t10 = gpu.alloc async [%t9] (%s0) : memref<?xi8>
  %s1, %t11 = gpu.spgemm_work_estimation_or_compute async [%t10] {WORK_ESTIMATION} %a, %b, %c, %d, %s0, %buf1 : f64 into memref<?xi8>
  %s2, %t12 = gpu.spgemm_work_estimation_or_compute async [%t11] {COMPUTE} %a, %b, %c, %d, %c0, %buf0 : f64 into memref<?xi8>
  %buf2, %t13 = gpu.alloc async [%t12] (%s2) : memref<?xi8>
  %s3, %t14 = gpu.spgemm_work_estimation_or_compute async [%t13] {COMPUTE} %a, %b, %c, %d, %s2, %buf2 : f64 into memref<?xi8>
  %rows, %cols, %nnz, %t15 = gpu.spmat_get_size async [%t14] %c
  vector.print %rows : index
  vector.print %nnz : index
  %cidx, %t16 = gpu.alloc async [%t15] () : memref<9xi32>
  %cval, %t17 = gpu.alloc async [%t16] () : memref<9xf64>
  %zero = arith.constant 0.0 : f64
  %zi = arith.constant 0 : i32
  %t17a = gpu.memset async [%t17] %cval, %zero : memref<9xf64>, f64
  %t17b = gpu.memset async [%t17a] %cidx, %zi : memref<9xi32>, i32
  %t18 = gpu.set_csr_pointers async [%t17b] %c, %cpos, %cidx, %cval : memref<4xi32>, memref<9xi32>, memref<9xf64>
  %t19 = gpu.spgemm_copy async [%t18] %a, %b, %c, %d : f64
  %t20 = gpu.spgemm_destroy_descr async [%t19] %d
  %t21 = gpu.destroy_sp_mat async [%t20] %a
  %t22 = gpu.destroy_sp_mat async [%t21] %b
  %t23 = gpu.destroy_sp_mat async [%t22] %c
  %hc = memref.alloc() : memref<9xf64>
  %hi = memref.alloc() : memref<9xi32>
  %hp = memref.alloc() : memref<4xi32>
  %t24 = gpu.memcpy async [%t23] %hc, %cval : memref<9xf64>, memref<9xf64>
  %t25 = gpu.memcpy async [%t24] %hi, %cidx : memref<9xi32>, memref<9xi32>
  %t26 = gpu.memcpy async [%t25] %hp, %cpos : memref<4xi32>, memref<4xi32>
  gpu.wait [%t26]
  %u = memref.cast %hc : memref<9xf64> to memref<*xf64>
  call @printMemrefF64(%u) : (memref<*xf64>) -> ()
  %ui = memref.cast %hi : memref<9xi32> to memref<*xi32>
  call @printMemrefI32(%ui) : (memref<*xi32>) -> ()
  %up = memref.cast %hp : memref<4xi32> to memref<*xi32>
  call @printMemrefI32(%up) : (memref<*xi32>) -> ()
  return
}
