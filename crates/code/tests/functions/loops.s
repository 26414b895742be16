# Loops of which each is bound by one thing. rdi: turns, rsi: data whose first words hold its own address. A test asks for
# their cycles, and an example times them.
	.intel_syntax noprefix
	.text

	.globl clocked, clocked_turn, clocked_end
clocked:
	mov eax, 1
clocked_turn:
	imul rax, rax
	imul rax, rax
	imul rax, rax
	imul rax, rax
	imul rax, rax
	imul rax, rax
	imul rax, rax
	imul rax, rax
	dec rdi
	jne clocked_turn
	ret
clocked_end:

	.globl multiply_add, multiply_add_turn, multiply_add_end
multiply_add:
	xor eax, eax
multiply_add_turn:
	imul rax, rax, 31
	add rax, qword ptr [rsi]
	dec rdi
	jne multiply_add_turn
	ret
multiply_add_end:

	.globl float_chain, float_chain_turn, float_chain_end
float_chain:
	pxor xmm0, xmm0
	pxor xmm1, xmm1
float_chain_turn:
	mulsd xmm0, xmm1
	dec rdi
	jne float_chain_turn
	ret
float_chain_end:

	.globl float_sums, float_sums_turn, float_sums_end
float_sums:
	pxor xmm0, xmm0
float_sums_turn:
	addsd xmm1, xmm0
	addsd xmm2, xmm0
	addsd xmm3, xmm0
	addsd xmm4, xmm0
	addsd xmm5, xmm0
	addsd xmm6, xmm0
	addsd xmm7, xmm0
	addsd xmm8, xmm0
	addsd xmm9, xmm0
	addsd xmm10, xmm0
	dec rdi
	jne float_sums_turn
	ret
float_sums_end:

	.globl chase, chase_turn, chase_end
chase:
	nop
chase_turn:
	mov rsi, qword ptr [rsi]
	dec rdi
	jne chase_turn
	ret
chase_end:

	.globl indexed_chase, indexed_chase_turn, indexed_chase_end
indexed_chase:
	xor eax, eax
	mov rdx, rsi
indexed_chase_turn:
	mov rax, qword ptr [rdx+rax]
	sub rax, rsi
	dec rdi
	jne indexed_chase_turn
	ret
indexed_chase_end:

	.globl loads, loads_turn, loads_end
loads:
	nop
loads_turn:
	mov rax, qword ptr [rsi]
	mov rcx, qword ptr [rsi+8]
	mov rdx, qword ptr [rsi+16]
	mov r8, qword ptr [rsi+24]
	mov r9, qword ptr [rsi+32]
	mov r10, qword ptr [rsi+40]
	dec rdi
	jne loads_turn
	ret
loads_end:

	.globl stores, stores_turn, stores_end
stores:
	nop
stores_turn:
	mov qword ptr [rsi+64], rdi
	mov qword ptr [rsi+72], rdi
	mov qword ptr [rsi+80], rdi
	mov qword ptr [rsi+88], rdi
	mov qword ptr [rsi+96], rdi
	mov qword ptr [rsi+104], rdi
	dec rdi
	jne stores_turn
	ret
stores_end:

	.globl integers, integers_turn, integers_end
integers:
	nop
integers_turn:
	lea rax, [rsi+1]
	xor rcx, rsi
	or rdx, rsi
	and r8, rsi
	xor r9, rsi
	or r10, rsi
	and r11, rsi
	xor rax, rsi
	or rcx, rsi
	xor rdx, rsi
	dec rdi
	jne integers_turn
	ret
integers_end:

	.globl products, products_turn, products_end
products:
	nop
products_turn:
	imul rax, rsi, 3
	imul rcx, rsi, 5
	imul rdx, rsi, 7
	imul r8, rsi, 9
	imul r9, rsi, 11
	imul r10, rsi, 13
	dec rdi
	jne products_turn
	ret
products_end:

	.globl divisions, divisions_turn, divisions_end
divisions:
	mov eax, 1
	mov r8d, 1
divisions_turn:
	xor edx, edx
	div r8
	dec rdi
	jne divisions_turn
	ret
divisions_end:

	.globl jumps, jumps_turn, jumps_end
jumps:
	nop
jumps_turn:
	jmp .Ljumps_second
	nop
.Ljumps_second:
	jmp .Ljumps_third
	nop
.Ljumps_third:
	jmp .Ljumps_fourth
	nop
.Ljumps_fourth:
	dec rdi
	jne jumps_turn
	ret
jumps_end:

	.globl hashed, hashed_turn, hashed_end
hashed:
	mov eax, 1
hashed_turn:
	mov rcx, rax
	shl rcx, 13
	xor rax, rcx
	mov rcx, rax
	shr rcx, 7
	xor rax, rcx
	mov rcx, rax
	shl rcx, 17
	xor rax, rcx
	dec rdi
	jne hashed_turn
	ret
hashed_end:

	.globl spilled, spilled_turn, spilled_end
spilled:
	nop
spilled_turn:
	mov rax, qword ptr [rsp-16]
	add rax, rsi
	mov qword ptr [rsp-16], rax
	dec rdi
	jne spilled_turn
	ret
spilled_end:
	.att_syntax
