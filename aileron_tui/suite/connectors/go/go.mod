module connector

go 1.21
