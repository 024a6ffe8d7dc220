// RUN: mgpu-tune run %s | FileCheck %s

// One matrix in each form of the dialect, and its products with vectors and matrices, as it
// stands and transposed, on top of what was there:
//   1 0 0 2 0 0
//   0 0 0 0 0 0
//   0 3 4 0 0 0
//   5 0 0 6 0 7

// CHECK: csr
// CHECK-NEXT: ( 9, 0, 18, 71 )
// CHECK-NEXT: ( 121, 109, 112, 126, 100, 128 )
// CHECK-NEXT: ( ( 9, 90 ), ( 0, 0 ), ( 18, 180 ), ( 71, 710 ) )
// CHECK-NEXT: ( ( 1, 0 ), ( 0, 0 ), ( 0, 3 ), ( 5, 0 ) )
// CHECK-NEXT: 4
// CHECK-NEXT: 6
// CHECK-NEXT: 7
// CHECK: csc
// CHECK-NEXT: ( 9, 0, 18, 71 )
// CHECK-NEXT: ( 121, 109, 112, 126, 100, 128 )
// CHECK-NEXT: ( ( 9, 90 ), ( 0, 0 ), ( 18, 180 ), ( 71, 710 ) )
// CHECK-NEXT: ( ( 1, 0 ), ( 0, 0 ), ( 0, 3 ), ( 5, 0 ) )
// CHECK-NEXT: 4
// CHECK-NEXT: 6
// CHECK-NEXT: 7
// CHECK: coo
// CHECK-NEXT: ( 9, 0, 18, 71 )
// CHECK-NEXT: ( 121, 109, 112, 126, 100, 128 )
// CHECK-NEXT: ( ( 9, 90 ), ( 0, 0 ), ( 18, 180 ), ( 71, 710 ) )
// CHECK-NEXT: ( ( 1, 0 ), ( 0, 0 ), ( 0, 3 ), ( 5, 0 ) )
// CHECK-NEXT: 4
// CHECK-NEXT: 6
// CHECK-NEXT: 7
// CHECK: coo_aos
// CHECK-NEXT: ( 9, 0, 18, 71 )
// CHECK-NEXT: ( 121, 109, 112, 126, 100, 128 )
// CHECK-NEXT: ( ( 9, 90 ), ( 0, 0 ), ( 18, 180 ), ( 71, 710 ) )
// CHECK-NEXT: ( ( 1, 0 ), ( 0, 0 ), ( 0, 3 ), ( 5, 0 ) )
// CHECK-NEXT: 4
// CHECK-NEXT: 6
// CHECK-NEXT: 7
// CHECK: bsr
// CHECK-NEXT: ( 9, 0, 18, 71 )
// CHECK-NEXT: ( 121, 109, 112, 126, 100, 128 )
// CHECK-NEXT: ( ( 9, 90 ), ( 0, 0 ), ( 18, 180 ), ( 71, 710 ) )
// CHECK-NEXT: ( ( 1, 0 ), ( 0, 0 ), ( 0, 3 ), ( 5, 0 ) )
// CHECK-NEXT: 4
// CHECK-NEXT: 6
// CHECK-NEXT: 20
// CHECK: sampled
// CHECK-NEXT: ( 2, 6, 11, 15, 12, 25, 34 )
// CHECK-NEXT: ( 2, 12, 11, 15, 6, 25, 34 )
// CHECK-NEXT: ( 2, 6, 11, 15, 12, 25, 34 )
// CHECK: wide
// CHECK-NEXT: ( 9, 0, 18, 71 )

memref.global "private" constant @row_pos : memref<5xindex> = dense<[0, 2, 2, 4, 7]>
memref.global "private" constant @columns : memref<7xindex> = dense<[0, 3, 1, 2, 0, 3, 5]>
memref.global "private" constant @values : memref<7xf32> = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]>
memref.global "private" constant @column_pos : memref<7xi32> = dense<[0, 2, 3, 4, 6, 6, 7]>
memref.global "private" constant @rows_of : memref<7xi64> = dense<[0, 3, 2, 2, 0, 3, 3]>
memref.global "private" constant @by_columns : memref<7xf32> = dense<[1.0, 5.0, 3.0, 4.0, 2.0, 6.0, 7.0]>
memref.global "private" constant @rows : memref<7xindex> = dense<[0, 0, 2, 2, 3, 3, 3]>
memref.global "private" constant @pairs : memref<14xi32> = dense<[0, 0, 0, 3, 2, 1, 2, 2, 3, 0, 3, 3, 3, 5]>
memref.global "private" constant @block_pos : memref<3xindex> = dense<[0, 2, 5]>
memref.global "private" constant @block_columns : memref<5xindex> = dense<[0, 1, 0, 1, 2]>
memref.global "private" constant @blocks : memref<20xf32> = dense<[1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 5.0, 0.0, 4.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0, 7.0]>
memref.global "private" constant @x : memref<6xf32> = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]>
memref.global "private" constant @z : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global "private" constant @right : memref<6x2xf32> = dense<[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0], [6.0, 60.0]]>
memref.global "private" constant @wide : memref<2x6xf32> = dense<[[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]]>
memref.global "private" constant @left : memref<4x2xf32> = dense<[[1.0, 0.0], [2.0, 1.0], [3.0, 2.0], [4.0, 3.0]]>
memref.global "private" constant @up : memref<2x6xf32> = dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]>
memref.global "private" constant @small : memref<7xf16> = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]>

func.func private @products(%a: !gpu.sparse.spmat_handle) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %hundred = arith.constant 100.0 : f32
  %h_x = memref.get_global @x : memref<6xf32>
  %x = gpu.alloc () : memref<6xf32>
  gpu.memcpy %x, %h_x : memref<6xf32>, memref<6xf32>
  %h_z = memref.get_global @z : memref<4xf32>
  %z = gpu.alloc () : memref<4xf32>
  gpu.memcpy %z, %h_z : memref<4xf32>, memref<4xf32>
  %h_right = memref.get_global @right : memref<6x2xf32>
  %right = gpu.alloc () : memref<6x2xf32>
  gpu.memcpy %right, %h_right : memref<6x2xf32>, memref<6x2xf32>
  %h_wide = memref.get_global @wide : memref<2x6xf32>
  %wide = gpu.alloc () : memref<2x6xf32>
  gpu.memcpy %wide, %h_wide : memref<2x6xf32>, memref<2x6xf32>
  %y = gpu.alloc () : memref<4xf32>
  %w = gpu.alloc () : memref<6xf32>
  %c = gpu.alloc () : memref<4x2xf32>
  %d = gpu.alloc () : memref<4x2xf32>
  %t0 = gpu.wait async
  %t1 = gpu.memset async [%t0] %y, %zero : memref<4xf32>, f32
  %t2 = gpu.memset async [%t1] %w, %hundred : memref<6xf32>, f32
  %t3 = gpu.memset async [%t2] %c, %zero : memref<4x2xf32>, f32
  %t4 = gpu.memset async [%t3] %d, %zero : memref<4x2xf32>, f32
  %vx, %t5 = gpu.create_dn_tensor async [%t4] %x, %c6 : index into memref<6xf32>
  %vy, %t6 = gpu.create_dn_tensor async [%t5] %y, %c4 : index into memref<4xf32>
  %vz, %t7 = gpu.create_dn_tensor async [%t6] %z, %c4 : index into memref<4xf32>
  %vw, %t8 = gpu.create_dn_tensor async [%t7] %w, %c6 : index into memref<6xf32>
  %s0, %t9 = gpu.spmv_buffer_size async [%t8] %a, %vx, %vy into f32
  %b0, %t10 = gpu.alloc async [%t9] (%s0) : memref<?xi8>
  %t11 = gpu.spmv async [%t10] %a, %vx, %vy, %b0 : memref<?xi8> into f32
  %t12 = gpu.spmv async [%t11] %a{TRANSPOSE}, %vz, %vw, %b0 : memref<?xi8> into f32
  %mb, %t13 = gpu.create_dn_tensor async [%t12] %right, %c6, %c2 : index, index into memref<6x2xf32>
  %mc, %t14 = gpu.create_dn_tensor async [%t13] %c, %c4, %c2 : index, index into memref<4x2xf32>
  %s1, %t15 = gpu.spmm_buffer_size async [%t14] %a, %mb, %mc : index into f32
  %b1, %t16 = gpu.alloc async [%t15] (%s1) : memref<?xi8>
  %t17 = gpu.spmm async [%t16] %a, %mb, %mc, %b1 : memref<?xi8> into f32
  %mw, %t18 = gpu.create_dn_tensor async [%t17] %wide, %c2, %c6 : index, index into memref<2x6xf32>
  %md, %t19 = gpu.create_dn_tensor async [%t18] %d, %c4, %c2 : index, index into memref<4x2xf32>
  %t20 = gpu.spmm async [%t19] %a, %mw{TRANSPOSE}, %md, %b1 : memref<?xi8> into f32
  %t21 = gpu.destroy_dn_tensor async [%t20] %vx
  %t22 = gpu.destroy_dn_tensor async [%t21] %mb
  %ry = memref.alloc() : memref<4xf32>
  %rw = memref.alloc() : memref<6xf32>
  %rc = memref.alloc() : memref<4x2xf32>
  %rd = memref.alloc() : memref<4x2xf32>
  %t23 = gpu.memcpy async [%t22] %ry, %y : memref<4xf32>, memref<4xf32>
  %t24 = gpu.memcpy async [%t23] %rw, %w : memref<6xf32>, memref<6xf32>
  %t25 = gpu.memcpy async [%t24] %rc, %c : memref<4x2xf32>, memref<4x2xf32>
  %t26 = gpu.memcpy async [%t25] %rd, %d : memref<4x2xf32>, memref<4x2xf32>
  gpu.wait [%t26]
  %py = vector.load %ry[%c0] : memref<4xf32>, vector<4xf32>
  vector.print %py : vector<4xf32>
  %pw = vector.load %rw[%c0] : memref<6xf32>, vector<6xf32>
  vector.print %pw : vector<6xf32>
  %pc = vector.load %rc[%c0, %c0] : memref<4x2xf32>, vector<4x2xf32>
  vector.print %pc : vector<4x2xf32>
  %pd = vector.load %rd[%c0, %c0] : memref<4x2xf32>, vector<4x2xf32>
  vector.print %pd : vector<4x2xf32>
  %rows, %columns, %count = gpu.spmat_get_size %a
  vector.print %rows : index
  vector.print %columns : index
  vector.print %count : index
  gpu.destroy_sp_mat %a
  return
}

// On the entries of a matrix alone: row i + 1 times column j + 1 and i, on top of the values.
func.func private @sampled(%m: !gpu.sparse.spmat_handle, %values: memref<7xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %h_left = memref.get_global @left : memref<4x2xf32>
  %left = gpu.alloc () : memref<4x2xf32>
  gpu.memcpy %left, %h_left : memref<4x2xf32>, memref<4x2xf32>
  %h_up = memref.get_global @up : memref<2x6xf32>
  %up = gpu.alloc () : memref<2x6xf32>
  gpu.memcpy %up, %h_up : memref<2x6xf32>, memref<2x6xf32>
  %ml = gpu.create_dn_tensor %left, %c4, %c2 : index, index into memref<4x2xf32>
  %mu = gpu.create_dn_tensor %up, %c2, %c6 : index, index into memref<2x6xf32>
  %s = gpu.sddmm_buffer_size %ml, %mu, %m into f32
  %b = gpu.alloc (%s) : memref<?xi8>
  gpu.sddmm %ml, %mu, %m, %b : memref<?xi8> into f32
  %r = memref.alloc() : memref<7xf32>
  gpu.memcpy %r, %values : memref<7xf32>, memref<7xf32>
  %p = vector.load %r[%c0] : memref<7xf32>, vector<7xf32>
  vector.print %p : vector<7xf32>
  return
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %h_row_pos = memref.get_global @row_pos : memref<5xindex>
  %row_pos = gpu.alloc () : memref<5xindex>
  gpu.memcpy %row_pos, %h_row_pos : memref<5xindex>, memref<5xindex>
  %h_columns = memref.get_global @columns : memref<7xindex>
  %columns = gpu.alloc () : memref<7xindex>
  gpu.memcpy %columns, %h_columns : memref<7xindex>, memref<7xindex>
  %h_values = memref.get_global @values : memref<7xf32>
  %values = gpu.alloc () : memref<7xf32>
  gpu.memcpy %values, %h_values : memref<7xf32>, memref<7xf32>
  %h_column_pos = memref.get_global @column_pos : memref<7xi32>
  %column_pos = gpu.alloc () : memref<7xi32>
  gpu.memcpy %column_pos, %h_column_pos : memref<7xi32>, memref<7xi32>
  %h_rows_of = memref.get_global @rows_of : memref<7xi64>
  %rows_of = gpu.alloc () : memref<7xi64>
  gpu.memcpy %rows_of, %h_rows_of : memref<7xi64>, memref<7xi64>
  %h_by_columns = memref.get_global @by_columns : memref<7xf32>
  %by_columns = gpu.alloc () : memref<7xf32>
  gpu.memcpy %by_columns, %h_by_columns : memref<7xf32>, memref<7xf32>
  %h_rows = memref.get_global @rows : memref<7xindex>
  %rows = gpu.alloc () : memref<7xindex>
  gpu.memcpy %rows, %h_rows : memref<7xindex>, memref<7xindex>
  %h_pairs = memref.get_global @pairs : memref<14xi32>
  %pairs = gpu.alloc () : memref<14xi32>
  gpu.memcpy %pairs, %h_pairs : memref<14xi32>, memref<14xi32>
  %h_block_pos = memref.get_global @block_pos : memref<3xindex>
  %block_pos = gpu.alloc () : memref<3xindex>
  gpu.memcpy %block_pos, %h_block_pos : memref<3xindex>, memref<3xindex>
  %h_block_columns = memref.get_global @block_columns : memref<5xindex>
  %block_columns = gpu.alloc () : memref<5xindex>
  gpu.memcpy %block_columns, %h_block_columns : memref<5xindex>, memref<5xindex>
  %h_blocks = memref.get_global @blocks : memref<20xf32>
  %blocks = gpu.alloc () : memref<20xf32>
  gpu.memcpy %blocks, %h_blocks : memref<20xf32>, memref<20xf32>
  %h_small = memref.get_global @small : memref<7xf16>
  %small = gpu.alloc () : memref<7xf16>
  gpu.memcpy %small, %h_small : memref<7xf16>, memref<7xf16>
  %csr = gpu.create_csr %c4, %c6, %c7, %row_pos, %columns, %values : memref<5xindex>, memref<7xindex>, memref<7xf32>
  vector.print str "csr\n"
  call @products(%csr) : (!gpu.sparse.spmat_handle) -> ()
  %csc = gpu.create_csc %c4, %c6, %c7, %column_pos, %rows_of, %by_columns : memref<7xi32>, memref<7xi64>, memref<7xf32>
  vector.print str "csc\n"
  call @products(%csc) : (!gpu.sparse.spmat_handle) -> ()
  %coo = gpu.create_coo %c4, %c6, %c7, %rows, %columns, %values : memref<7xindex>, memref<7xindex>, memref<7xf32>
  vector.print str "coo\n"
  call @products(%coo) : (!gpu.sparse.spmat_handle) -> ()
  %aos = gpu.create_coo_aos %c4, %c6, %c7, %pairs, %values : memref<14xi32>, memref<7xf32>
  vector.print str "coo_aos\n"
  call @products(%aos) : (!gpu.sparse.spmat_handle) -> ()
  %bsr = gpu.create_bsr %c2, %c3, %c5, %c2, %c2, %block_pos, %block_columns, %blocks : memref<3xindex>, memref<5xindex>, memref<20xf32>
  vector.print str "bsr\n"
  call @products(%bsr) : (!gpu.sparse.spmat_handle) -> ()

  vector.print str "sampled\n"
  %csr2 = gpu.create_csr %c4, %c6, %c7, %row_pos, %columns, %values : memref<5xindex>, memref<7xindex>, memref<7xf32>
  call @sampled(%csr2, %values) : (!gpu.sparse.spmat_handle, memref<7xf32>) -> ()
  %csc2 = gpu.create_csc %c4, %c6, %c7, %column_pos, %rows_of, %by_columns : memref<7xi32>, memref<7xi64>, memref<7xf32>
  call @sampled(%csc2, %by_columns) : (!gpu.sparse.spmat_handle, memref<7xf32>) -> ()
  gpu.memcpy %values, %h_values : memref<7xf32>, memref<7xf32>
  %coo2 = gpu.create_coo %c4, %c6, %c7, %rows, %columns, %values : memref<7xindex>, memref<7xindex>, memref<7xf32>
  call @sampled(%coo2, %values) : (!gpu.sparse.spmat_handle, memref<7xf32>) -> ()

  // Values of f16 and sums in f64.
  %narrow = gpu.create_csr %c4, %c6, %c7, %row_pos, %columns, %small : memref<5xindex>, memref<7xindex>, memref<7xf16>
  %h_x = memref.get_global @x : memref<6xf32>
  %x = gpu.alloc () : memref<6xf32>
  gpu.memcpy %x, %h_x : memref<6xf32>, memref<6xf32>
  %f0 = arith.constant 0.0 : f64
  %y = gpu.alloc () : memref<4xf64>
  gpu.memset %y, %f0 : memref<4xf64>, f64
  %vx = gpu.create_dn_tensor %x, %c6 : index into memref<6xf32>
  %vy = gpu.create_dn_tensor %y, %c4 : index into memref<4xf64>
  %size = gpu.spmv_buffer_size %narrow, %vx, %vy into f64
  %buffer = gpu.alloc (%size) : memref<?xi8>
  gpu.spmv %narrow, %vx, %vy, %buffer : memref<?xi8> into f64
  %r = memref.alloc() : memref<4xf64>
  gpu.memcpy %r, %y : memref<4xf64>, memref<4xf64>
  %p = vector.load %r[%c0] : memref<4xf64>, vector<4xf64>
  vector.print str "wide\n"
  vector.print %p : vector<4xf64>
  return
}
