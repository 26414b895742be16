# What gcc 12 makes at -O0: every variable lives in the frame. Labels name the loads that the test asks about.
	.intel_syntax noprefix
	.text
	.globl _start
_start:

# while (p) { s += p->value; p = p->next; }
list:
	push	rbp
	mov	rbp, rsp
	mov	QWORD PTR -24[rbp], rdi
	mov	QWORD PTR -8[rbp], 0
	jmp	2f
1:
list_pointer:
	mov	rax, QWORD PTR -24[rbp]
list_value:
	mov	rax, QWORD PTR 8[rax]
	add	QWORD PTR -8[rbp], rax
	mov	rax, QWORD PTR -24[rbp]
list_next:
	mov	rax, QWORD PTR [rax]
	mov	QWORD PTR -24[rbp], rax
2:
	cmp	QWORD PTR -24[rbp], 0
	jne	1b
	mov	rax, QWORD PTR -8[rbp]
	pop	rbp
	ret

# while (p && p->key != key) p = p->child[key > p->key];
tree:
	push	rbp
	mov	rbp, rsp
	mov	QWORD PTR -8[rbp], rdi
	mov	QWORD PTR -16[rbp], rsi
	jmp	2f
1:
	mov	rax, QWORD PTR -8[rbp]
tree_key:
	mov	rax, QWORD PTR 32[rax]
	cmp	rax, QWORD PTR -16[rbp]
	setb	al
	movzx	edx, al
	mov	rax, QWORD PTR -8[rbp]
	movsx	rdx, edx
	add	rdx, 2
tree_child:
	mov	rax, QWORD PTR [rax+rdx*8]
	mov	QWORD PTR -8[rbp], rax
2:
	cmp	QWORD PTR -8[rbp], 0
	je	3f
	mov	rax, QWORD PTR -8[rbp]
tree_key_again:
	mov	rax, QWORD PTR 32[rax]
	cmp	QWORD PTR -16[rbp], rax
	jne	1b
3:
	mov	rax, QWORD PTR -8[rbp]
	pop	rbp
	ret

# while (n--) global = global->next;
through_global:
	push	rbp
	mov	rbp, rsp
	mov	QWORD PTR -8[rbp], rdi
	jmp	2f
1:
global_pointer:
	mov	rax, QWORD PTR global[rip]
global_next:
	mov	rax, QWORD PTR [rax]
	mov	QWORD PTR global[rip], rax
2:
	mov	rax, QWORD PTR -8[rbp]
	lea	rdx, -1[rax]
	mov	QWORD PTR -8[rbp], rdx
	test	rax, rax
	jne	1b
	nop
	pop	rbp
	ret

# A function that is called: return p->next;
next_of:
	push	rbp
	mov	rbp, rsp
	mov	QWORD PTR -8[rbp], rdi
	mov	rax, QWORD PTR -8[rbp]
called_next:
	mov	rax, QWORD PTR [rax]
	pop	rbp
	ret

# while (p) { s += p->value; p = next_of(p); }
called:
	push	rbp
	mov	rbp, rsp
	sub	rsp, 24
	mov	QWORD PTR -24[rbp], rdi
	mov	QWORD PTR -8[rbp], 0
	jmp	2f
1:
	mov	rax, QWORD PTR -24[rbp]
called_value:
	mov	rax, QWORD PTR 8[rax]
	add	QWORD PTR -8[rbp], rax
	mov	rax, QWORD PTR -24[rbp]
	mov	rdi, rax
	call	next_of
	mov	QWORD PTR -24[rbp], rax
2:
	cmp	QWORD PTR -24[rbp], 0
	jne	1b
	mov	rax, QWORD PTR -8[rbp]
	leave
	ret

	.bss
	.align 8
global:
	.zero	8
