# Loads with values that more or less is computed from. rdi, rsi: data, rcx: turns, rbx, xmm1: no part of it. A test
# compares the cycles of the longest chain from each labelled load: a multiplication takes 3, of floats 4.
	.intel_syntax noprefix
	.text
	.globl _start
_start:

counted:
	imul	rbx, rbx, 7
	imul	rbx, rbx, 9
counted_addition:
	add	qword ptr [rdi], 1
	dec	rcx
	jne	counted
	ret

counted_apart:
	imul	rbx, rbx, 7
counted_apart_load:
	mov	rax, qword ptr [rdi]
	add	rax, 1
	mov	qword ptr [rdi], rax
	cmp	rax, 100
	mov	rax, rbx
	imul	rax, rax, 5
	dec	rcx
	jne	counted_apart
	ret

carried:
carried_load:
	mov	rax, qword ptr [rdi]
	xor	rbx, rax
	imul	rbx, rbx, 7
	imul	rbx, rbx, 9
	imul	rdx, rbx, 9
	imul	rsi, rbx, 9
	dec	rcx
	jne	carried
	ret

from_memory:
from_memory_load:
	add	qword ptr [rdi+8], 1
	mov	rax, qword ptr [rdi+8]
	imul	rax, rax, 7
	jmp	from_memory

inner:
inner_load:
	movsd	xmm0, qword ptr [rdi]
	mov	eax, 40
inner_loop:
	mulsd	xmm0, xmm1
	dec	eax
	jne	inner_loop
	dec	rcx
	jne	inner
	ret

pointer:
pointer_load:
	mov	rax, qword ptr [rdi]
	mov	rax, qword ptr [rax+8]
	imul	rax, rax, 7
	dec	rcx
	jne	pointer
	ret

calling:
calling_load:
	mov	rdi, qword ptr [rsi]
	call	cubed
	imul	rax, rax, 3
	dec	rcx
	jne	calling
	ret

cubed:
	mov	rax, rdi
	imul	rax, rdi
	imul	rax, rdi
	ret

retried_again:
	xor	rsi, 64
retried:
	mov	rdx, qword ptr [rsi]
retried_load:
	mov	rax, qword ptr [rdi]
	test	rdx, 1
	jne	retried
	cmp	rdx, qword ptr [rsi]
	jne	retried
	xor	rbx, rax
	imul	rbx, rbx, 7
	imul	rbx, rbx, 9
	dec	rcx
	jne	retried_again
	ret
