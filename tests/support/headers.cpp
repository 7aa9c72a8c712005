// The owner of the precompiled headers of all tests.
int main() {}
