#!/bin/sh
# Creates the roles and the database of docs/postgresql.md. The image of PostgreSQL runs it once, on an empty volume.
set -eu
psql --no-psqlrc --username=postgres --set=ON_ERROR_STOP=1 \
    --set=owner_password="$(cat /run/secrets/owner_password)" \
    --set=normata_password="$(cat /run/secrets/normata_password)" <<'SQL'
CREATE ROLE normata_service NOLOGIN;
CREATE ROLE normata_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE normata LOGIN PASSWORD :'normata_password';
GRANT normata_service TO normata_owner, normata;
CREATE DATABASE normata OWNER normata_owner TEMPLATE template0 ENCODING 'UTF8';
REVOKE CONNECT, TEMPORARY ON DATABASE normata FROM PUBLIC;
GRANT CONNECT ON DATABASE normata TO normata;
SQL
